// @module-tag slow

import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { expect, it, onTestFinished } from 'vitest'
import { createHandler } from '../../adapters/http/index.ts'
import { serve } from '../../adapters/node/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { open } from '../../src/index.ts'
import { MIB } from '../../src/model/limits.ts'
import { macrotask } from '../../src/runtime/macrotask.ts'
import { testClock } from '../support/index.ts'
import { Raw, request } from './raw.ts'
import { until } from './support.ts'

/** A server with 16 MiB for reads, and a stream of 8 batches of 1 MiB. */
async function startServer() {
  const clock = testClock()
  const hw = await open({ storage: memory(), clock, limits: { readBufferBytes: 16 * MIB } })
  const stream = hw.basin('basin').stream('stream')
  const batch = Array.from({ length: 15 }, () => 'x'.repeat(65_536))
  for (let count = 0; count < 8; count++) await stream.append(batch)
  const errors: unknown[] = []
  const server = await serve(hw, { auth: 'none', onError: (error) => errors.push(error) })
  onTestFinished(async () => {
    await Promise.all([server.close({ graceMs: 0 }), hw.close()])
  })
  return { hw, clock, server, errors }
}

const UNREAD = 24
const UNREAD_RESPONSES = 600
const PATH = '/v1/streams/stream/records?seq_num=0'

/** Requests and never reads. Not a unary read, whose reply fits into the buffers of the kernel. */
type Request = (url: string) => void

const onHttp1: Request = (url) => {
  const raw = new Raw(Number(new URL(url).port))
  raw.send(request('GET', PATH, { 'svc-basin': 'basin', accept: 'text/event-stream' })).socket.pause()
}

const onHttp2: Request = (url) => {
  const session = connectHttp2(url)
  session.on('error', () => {})
  onTestFinished(() => session.destroy())
  const stream = session.request({ ':path': PATH, 'svc-basin': 'basin', 'content-type': 'svcs/proto' })
  stream.on('error', () => {})
}

it.each<[string, Request]>([
  ['event streams', onHttp1],
  ['binary sessions over HTTP/2', onHttp2],
])('breaks off unread %s when other reads need their memory', async (_, send) => {
  const { hw, clock, server, errors } = await startServer()
  for (let count = 0; count < UNREAD; count++) send(server.url)
  // Unread requests hold the memory, and others wait for it.
  await until(() => server.counts().requests === UNREAD && hw.stats().readBufferBytes > 8 * MIB)
  // In this process, because virtual time does not wait for sockets.
  const handler = createHandler(hw, { auth: 'none' })
  let isRead = false
  const reading = (async () => {
    for (let count = 0; count < 2; count++) {
      const response = await handler(
        new Request(`${server.url}${PATH}`, { headers: { 'svc-basin': 'basin' } }),
      )
      expect((await response.json()).records).toHaveLength(15)
    }
    isRead = true
  })()
  // Virtual time passes only after what is read has been moved.
  while (!isRead) {
    for (let turn = 0; turn < 8; turn++) await macrotask()
    await clock.advance('250ms')
  }
  await reading
  // What waits for memory, and what was admitted last, is still open.
  expect(hw.stats().readBufferBytes).toBeLessThanOrEqual(20 * MIB)
  expect(server.counts().requests).toBeLessThan(UNREAD)
  expect(errors).toEqual([])
})

it('holds no memory for pipelined responses whose connection is lost', async () => {
  const { hw, server } = await startServer()
  const raw = new Raw(server.port)
  raw.send(request('GET', PATH, { 'svc-basin': 'basin' }).repeat(10)).socket.pause()
  // The batches are read, and most responses wait for the first ones.
  await until(() => hw.stats().openReads === 0 && hw.stats().readBufferBytes > 4 * MIB)
  raw.socket.destroy()
  await until(() => server.counts().requests === 0)
  await until(() => hw.stats().readBufferBytes === 0)
})

it.each([
  ['small', 'small?seq_num=0&count=1'],
  ['large', 'stream?seq_num=0&count=1&format=base64'],
])('breaks off unread responses to %s reads when others need their memory', async (_, read) => {
  const { hw, clock, server } = await startServer()
  for (let count = 0; count < 3; count++) await hw.basin('basin').stream('small').append('x'.repeat(60_000))
  const session = connectHttp2(server.url, { settings: { initialWindowSize: 0 } })
  session.on('error', () => {})
  onTestFinished(() => session.destroy())
  // Acknowledged by the server.
  await once(session, 'localSettings')
  const path = `/v1/streams/${read.replace('?', '/records?')}`
  for (let count = 0; count < UNREAD_RESPONSES; count++) {
    session.request({ ':path': path, 'svc-basin': 'basin' }).on('error', () => {})
  }
  await until(() => server.counts().requests === UNREAD_RESPONSES && hw.stats().readBufferBytes > 8 * MIB)
  while (hw.stats().openReads > 0) {
    expect(hw.stats().readBufferBytes).toBeLessThan(18 * MIB)
    for (let turn = 0; turn < 8; turn++) await macrotask()
    await clock.advance('250ms')
  }
  expect(server.counts().requests).toBeLessThan(UNREAD_RESPONSES / 2)
})
