import { randomBytes } from 'node:crypto'
import { getEventListeners } from 'node:events'
import { gzipSync } from 'node:zlib'
import { create, toBinary } from '@bufbuild/protobuf'
import { describe, expect, test } from 'vitest'
import { AppendInputSchema } from '../../src/wire/gen/records_pb.ts'
import { BASIN, BodyReader, RECORDS, startService, startWithStream, Upload } from '../http/support.ts'
import { http2Client, until } from '../node/support.ts'
import { Raw, request, server } from './raw.ts'

const basin = { 'svc-basin': BASIN }
const R = '/v1/streams/s/records'

test('the limit of a body counts it after decompression: incompressible data may be a little longer on the way', async () => {
  const { call } = await startWithStream({ maxBodyBytes: 1100 })
  const message = toBinary(
    AppendInputSchema,
    create(AppendInputSchema, { records: [{ body: randomBytes(1085) }] }),
  )
  expect(message.length).toBeLessThanOrEqual(1100)
  const post = (body: Uint8Array, headers = {}) =>
    call('POST', RECORDS, { body, headers: { 'content-type': 'application/protobuf', ...headers } })
  expect((await post(message)).status).toBe(200)
  expect((await post(gzipSync(message), { 'content-encoding': 'gzip' })).status).toBe(200)
})

describe('bodies where none is expected', () => {
  test.each([
    ['GET', `${R}/tail`, {}],
    ['GET', '/v1/basins', { 'content-encoding': 'gzip' }],
    ['PUT', '/v1/streams/x', {}],
    ['DELETE', '/v1/streams/gone', {}],
  ])('%s %s: read and dropped, the connection goes on', async (method, target, headers) => {
    const { port } = await server()
    const raw = new Raw(port)
    raw.send(request(method, target, { ...basin, ...headers }, 'GET /evil HTTP/1.1\r\n\r\n'.repeat(100_000)))
    const first = await raw.response()
    raw.send(request('GET', `${R}/tail`, basin))
    const second = await raw.response()
    expect([first.status < 410, second.status, second.body]).toEqual([
      true,
      200,
      '{"tail":{"seq_num":0,"timestamp":0}}',
    ])
    raw.send(
      `${request(method, target, { ...basin, 'transfer-encoding': 'chunked' })}5\r\nhello\r\n0\r\n\r\n`,
    )
    await raw.response()
    raw.send(request('GET', `${R}/tail`, basin))
    expect((await raw.response()).status).toBe(200)
  })
})

describe('races', () => {
  test('creations with one request token: one created, the others noop', async () => {
    const { call } = await startService()
    const answers = await Promise.all(
      Array.from({ length: 20 }, () =>
        call('POST', '/v1/basins', { json: { basin: 'some-basin' }, headers: { 'svc-request-token': 'x' } }),
      ),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([...Array(19).fill(200), 201])
    const puts = await Promise.all(Array.from({ length: 20 }, () => call('PUT', '/v1/basins/other')))
    expect(puts.map(({ status }) => status).sort()).toEqual([...Array(19).fill(200), 201])
  })
  test('first appends create one stream', async () => {
    const { call, hw } = await startService()
    await hw.createBasin(BASIN, { createStreamOnAppend: true })
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => call('POST', RECORDS, { json: { records: [{}] } })),
    )
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    expect((await hw.basin(BASIN).stream('s').checkTail()).seqNum).toBe(50)
  })
})

describe('nothing stays', () => {
  test('listeners of the engine and of the requests after 1,000 sessions that were cancelled, failed or ended', async () => {
    const { call, hw } = await startWithStream()
    const count = () => getEventListeners((hw as unknown as { closing: AbortSignal }).closing, 'abort').length
    const before = count()
    const signals: AbortSignal[] = []
    const done: Promise<unknown>[] = []
    for (let i = 0; i < 1000; i++) {
      const controller = new AbortController()
      signals.push(controller.signal)
      const kind = i % 4
      if (kind === 3) {
        const upload = new Upload()
        const response = await call('POST', RECORDS, {
          headers: { 'content-type': 'svcs/proto' },
          body: upload.body,
          signal: controller.signal,
        })
        const reader = new BodyReader(response)
        done.push(reader.ended.catch(() => {}))
        if (i % 3 === 0) upload.end()
        else if (i % 3 === 1) upload.write(Uint8Array.of(0, 0, 0))
        else controller.abort()
      } else if (kind === 2) {
        done.push(call('GET', `${RECORDS}?wait=60`, { signal: controller.signal }).catch(() => {}))
        setImmediate(() => controller.abort())
      } else {
        const response = await call('GET', RECORDS, {
          headers: kind === 0 ? { accept: 'text/event-stream' } : { 'content-type': 'svcs/proto' },
          signal: controller.signal,
        })
        if (i % 3 === 0) await response.body!.cancel()
        else if (i % 3 === 1) controller.abort()
        else {
          const reader = new BodyReader(response)
          await until(() => reader.bytes.length > 0)
          await reader.cancel()
        }
      }
    }
    await Promise.all(done)
    await until(() => Object.entries(hw.stats()).every(([name, n]) => name === 'cachedStreams' || n === 0))
    expect(count()).toBe(before)
  })

  test('an SSE client on HTTP/2 that never reads is not read for', async () => {
    const { url, hw, node } = await server()
    const stream = hw.basin(BASIN).stream('s')
    for (let i = 0; i < 40; i++) await stream.append('x'.repeat(1_000_000))
    const session = await http2Client(url)
    const requests = Array.from({ length: 20 }, () =>
      session
        .request({ ':path': `${R}?seq_num=0`, ...basin, 'content-type': 's2s/proto' })
        .on('error', () => {})
        .pause(),
    )
    await until(() => node.counts().requests === 20)
    await Promise.all(requests.map((r) => new Promise((resolve) => r.once('response', resolve))))
    const before = process.memoryUsage().rss
    for (let i = 0; i < 40; i++) await stream.append('x'.repeat(1_000_000))
    expect(process.memoryUsage().rss - before).toBeLessThan(200e6)
    session.destroy()
    await until(() => node.counts().requests === 0)
    await until(() => Object.entries(hw.stats()).every(([name, n]) => name === 'cachedStreams' || n === 0))
  })
})

test('methods that fetch does not know', async () => {
  const { port, errors } = await server()
  for (const method of ['TRACE', 'PROPFIND', 'QUERY', 'M-SEARCH']) {
    const raw = new Raw(port)
    raw.send(request(method, '/v1/basins'))
    const { status, headers } = await raw.response()
    expect.soft([method, status, headers.has('allow')]).toEqual([method, 405, true])
  }
  const raw = new Raw(port)
  raw.send(request('CONNECT', 'localhost:80'))
  await until(() => raw.ended || raw.pending !== '')
  expect(errors).toEqual([])
})
