import { describe, expect, test, vi } from 'vitest'
import { SharedSignal } from '../../src/runtime/abort.ts'
import { Raw, request, server } from '../node/raw.ts'
import { until } from '../node/support.ts'
import { BASIN, BodyReader, RECORDS, startWithStream, Upload } from './support.ts'

const basin = { 'svc-basin': BASIN }
const R = '/v1/streams/s/records'

describe('unexpected request bodies', () => {
  test.each([
    ['GET', `${R}/tail`, {}],
    ['GET', '/v1/basins', { 'content-encoding': 'gzip' }],
    ['PUT', '/v1/streams/x', {}],
    ['DELETE', '/v1/streams/gone', {}],
  ])('are read and dropped, and the connection stays open: %s %s', async (method, target, headers) => {
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

describe('leaks', () => {
  test('no listener remains after 1,000 sessions that were cancelled, failed or ended', async () => {
    const { call, hw } = await startWithStream()
    const added = vi.spyOn(SharedSignal.prototype, 'addEventListener')
    const removed = vi.spyOn(SharedSignal.prototype, 'removeEventListener')
    const count = () => added.mock.calls.length - removed.mock.calls.length
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
    await until(() => Object.entries(hw.stats()).every(([name, n]) => name === 'cachedStreams' || !n))
    expect(count()).toBe(before)
  })
})

test('rejects methods that fetch does not support with 405', async () => {
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
