import { describe, expect, test } from 'vitest'
import { Raw, request, server } from '../node/raw.ts'
import { until } from '../node/support.ts'
import { BASIN } from './support.ts'

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
    const raw = new Raw(port).send(
      request(method, target, { ...basin, ...headers }, 'GET /evil HTTP/1.1\r\n\r\n'.repeat(1_000)),
    )
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

test('rejects methods that fetch does not support with 405', async () => {
  const { port, errors } = await server()
  for (const method of ['TRACE', 'PROPFIND', 'QUERY', 'M-SEARCH']) {
    const raw = new Raw(port).send(request(method, '/v1/basins'))
    const { status, headers } = await raw.response()
    expect.soft([method, status, headers.has('allow')]).toEqual([method, 405, true])
  }
  const raw = new Raw(port).send(request('CONNECT', 'localhost:80'))
  await until(() => raw.ended || raw.received !== '')
  expect(errors).toEqual([])
})
