import { get, type IncomingMessage } from 'node:http'
import { connect as connectHttp2 } from 'node:http2'
import { expect, it, onTestFinished } from 'vitest'
import { serve } from '../../adapters/node/index.ts'
import { open } from '../../src/index.ts'
import { macrotask } from '../../src/runtime/macrotask.ts'
import type { StoredBlock } from '../../src/storage/contract.ts'
import { FrameDecoder, type MessageFrame } from '../../src/wire/frame.ts'
import { decodeReadBatch } from '../../src/wire/protobuf.ts'
import { wrapped } from '../storage/wrapped-storage.ts'

const PATH = '/v1/streams/stream/records?seq_num=0&count=600'
const HEADERS = { 'svc-basin': 'basin', 'content-type': 'svcs/proto' }

/** Reads into lent memory, and overwrites what was in it. */
function lending(lent: { count: number }) {
  return wrapped((session) => ({
    async read(logId, { memory, ...range }) {
      const blocks = await session.read(logId, range)
      if (memory === undefined) return blocks
      lent.count++
      memory.fill(0xee)
      let used = 0
      return blocks.map((block): StoredBlock => {
        const data = memory.subarray(used, used + block.data.length)
        expect(data.length).toBe(block.data.length)
        data.set(block.data)
        used += data.length
        return { ...block, data }
      })
    },
  }))
}

/** Opens a binary session. */
type Connect = (url: string) => AsyncIterable<Uint8Array>

const overHttp1: Connect = async function* (url) {
  const response = await new Promise<IncomingMessage>((resolve) =>
    get(`${url}${PATH}`, { headers: HEADERS }, resolve),
  )
  yield* response
}

const overHttp2: Connect = async function* (url) {
  const session = connectHttp2(url)
  onTestFinished(() => session.destroy())
  yield* session.request({ ':path': PATH, ...HEADERS })
}

it.each<[string, Connect]>([
  ['HTTP/1.1', overHttp1],
  ['HTTP/2', overHttp2],
])('sends memory before it is read into again, over %s', async (_, connect) => {
  const lent = { count: 0 }
  const hw = await open({ storage: lending(lent) })
  onTestFinished(() => hw.close())
  const stream = hw.basin('basin').stream('stream')
  // Small and large records, so that batches are sent in parts and as one.
  const sizeOf = (index: number) => (index % 100 < 50 ? 65_000 : 2_000)
  for (let first = 0; first < 600; first += 10) {
    await stream.append(
      Array.from({ length: 10 }, (_, i) => new Uint8Array(sizeOf(first + i)).fill((first + i) % 200)),
    )
  }
  const server = await serve(hw, { auth: 'none' })
  onTestFinished(() => server.close({ graceMs: 0 }))
  const decoder = new FrameDecoder()
  let next = 0
  for await (const chunk of connect(server.url)) {
    // A client that is sometimes slow, so that the server waits for it.
    if (next % 100 === 0) for (let turn = 0; turn < 200; turn++) await macrotask()
    for (const frame of decoder.decode(chunk)) {
      for (const { seqNum, body } of decodeReadBatch((frame as MessageFrame).payload).records) {
        expect(seqNum).toBe(next)
        expect(body).toEqual(new Uint8Array(sizeOf(next)).fill(next % 200))
        next++
      }
    }
  }
  expect(next).toBe(600)
  expect(lent.count).toBeGreaterThan(5)
})
