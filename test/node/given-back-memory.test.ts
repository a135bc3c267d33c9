// @module-tag slow

import { createCipheriv } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { connect } from '../../adapters/client/index.ts'
import { serve, toNodeHandler } from '../../adapters/node/index.ts'
import { ReadBuffers } from '../../adapters/storage/filesystem/files/read-buffers.ts'
import { filesystem } from '../../adapters/storage/filesystem/index.ts'
import { type Engine, open, type Stream } from '../../src/index.ts'
import { temporaryDirectory } from '../storage/filesystem/directories.ts'
import { collect, http2Client } from './support.ts'

const BATCHES = 24
const RECORDS = 900
const BODY_BYTES = 1024
const PATH = '/v1/streams/large/records?seq_num=0'
const HEADERS = { 'content-type': 's2s/proto', 's2-basin': 'my-basin', 'accept-encoding': 'identity' }

/** The memory of what a session has sent is overwritten as soon as it is given back. */
describe('memory that is given back to the filesystem storage', () => {
  let hw: Engine
  let stream: Stream
  let givenBack: number
  const bodies: Uint8Array[] = []

  beforeAll(async () => {
    hw = await open({ storage: filesystem(await temporaryDirectory()) })
    await hw.ensureBasin('my-basin')
    stream = hw.basin('my-basin').stream('large')
    const all = noise(BATCHES * RECORDS * BODY_BYTES)
    for (let batch = 0; batch < BATCHES; batch++) {
      const added = Array.from({ length: RECORDS }, (_, record) => {
        const start = (batch * RECORDS + record) * BODY_BYTES
        return all.slice(start, start + BODY_BYTES)
      })
      await stream.append(added)
      bodies.push(...added)
    }
  })
  afterAll(() => hw.close())

  beforeEach(() => {
    givenBack = 0
    const { giveBack } = ReadBuffers.prototype
    vi.spyOn(ReadBuffers.prototype, 'giveBack').mockImplementation(function (this: ReadBuffers, buffer) {
      givenBack++
      Buffer.from(buffer.buffer).fill(0xdd)
      giveBack.call(this, buffer)
    })
    onTestFinished(() => {
      vi.restoreAllMocks()
    })
  })

  /** Reads all records, and pauses after each batch for so many turns of the event loop. */
  async function expectAll(reader: Stream, turns: number): Promise<void> {
    let next = 0
    for await (const { records } of reader.read({}, { as: 'bytes' }).batches()) {
      for (const { seqNum, body } of records) {
        expect(seqNum).toBe(next)
        if (Buffer.compare(body, bodies[next]!) !== 0) throw new Error(`record ${next} differs`)
        next++
      }
      for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve))
    }
    expect(next).toBe(bodies.length)
  }

  it('is neither what sessions send nor what readers in the process hold', async () => {
    const server = await serve(hw, { auth: 'none', port: 0 })
    onTestFinished(() => server.close({ graceMs: 0 }))
    const remote = await connect({ url: server.url })
    onTestFinished(() => remote.close())
    const held = await stream.readBatch({ seqNum: 0 }, { as: 'bytes' })
    const reader = remote.basin('my-basin').stream('large')
    await Promise.all([expectAll(reader, 0), expectAll(reader, 10), expectAll(stream, 1)])
    expect(held.records.map(({ body }) => body)).toEqual(bodies.slice(0, held.count))
    expect(givenBack).toBeGreaterThan(0)
  })

  it('is what a session over HTTP/1.1 has sent, after a client has left another one', async () => {
    const server = createServer(toNodeHandler(hw, { auth: 'none' }))
    const url = await listening(server)
    const left = await fetch(`${url}${PATH}`, { headers: HEADERS })
    const abandoned = left.body!.getReader()
    await abandoned.read()
    await abandoned.cancel()
    const response = await fetch(`${url}${PATH}&wait=0`, { headers: HEADERS })
    const sent = Buffer.from(await response.arrayBuffer())
    expect(givenBack).toBeGreaterThan(0)
    const http2 = await http2Server()
    const session = await http2Client(http2)
    const request = session.request({ ':path': `${PATH}&wait=0`, ...HEADERS })
    const again = Buffer.concat(await collect(request))
    expect(sent.equals(again)).toBe(true)
    expect(bodies.every((body, index) => index % 2_000 !== 0 || sent.includes(Buffer.from(body)))).toBe(true)
  })

  it('is not given back if a framework writes in place of Node', async () => {
    const handler = toNodeHandler(hw, { auth: 'none' })
    const server = createServer((req, res) => {
      const write = res.write.bind(res) as (...args: unknown[]) => boolean
      res.write = (...args: unknown[]) => write(...args)
      handler(req, res)
    })
    const response = await fetch(`${await listening(server)}${PATH}&wait=0`, { headers: HEADERS })
    expect((await response.arrayBuffer()).byteLength).toBeGreaterThan(BATCHES * RECORDS * BODY_BYTES)
    expect(givenBack).toBe(0)
  })

  async function http2Server(): Promise<string> {
    const server = await serve(hw, { auth: 'none', port: 0 })
    onTestFinished(() => server.close({ graceMs: 0 }))
    return server.url
  }
})

async function listening(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Bytes without a pattern, the same in each run. */
function noise(bytes: number): Uint8Array {
  const cipher = createCipheriv('aes-128-ctr', Buffer.alloc(16), Buffer.alloc(16))
  return new Uint8Array(cipher.update(Buffer.alloc(bytes)))
}
