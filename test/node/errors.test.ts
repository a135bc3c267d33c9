import { describe, expect, it } from 'vitest'
import { Raw, request } from './raw.ts'
import { collect, http2Client, http2Fetch, laterChunks, ok, startServer, until } from './support.ts'

const secret = new Error('secret of the house')
const INTERNAL_ERROR = { code: 'other', message: 'internal error' }

describe('a handler that fails', () => {
  it.each([
    [
      'throws',
      () => {
        throw secret
      },
    ],
    ['rejects', () => Promise.reject(secret)],
  ])('and %s results in a 500 without details, on both protocols', async (_, handler) => {
    const { server, errors } = await startServer(handler)
    const session = await http2Client(server.url)
    const second = await http2Fetch(session, { ':path': '/' })
    const first = await fetch(server.url)
    expect([first.status, first.headers.get('content-type')]).toEqual([500, 'application/json'])
    expect(await first.json()).toEqual(INTERNAL_ERROR)
    expect([second.headers[':status'], JSON.parse(second.body)]).toEqual([500, INTERNAL_ERROR])
    expect(errors).toEqual([secret, secret])
  })

  it('and sets a header that HTTP/1.1 cannot carry results in a 500 with none of its headers', async () => {
    const headers = { 'x-first': 'fine', 'x-second': 'a\u0001b' }
    const { server, errors } = await startServer(() => ({ status: 200, headers, body: 'x' }))
    const response = await fetch(server.url)
    expect([response.status, response.headers.has('x-first')]).toEqual([500, false])
    expect(errors).toHaveLength(1)
  })
})

it.each([
  ['an error', secret],
  ['undefined', undefined],
])('a response that is cut off by %s does not end cleanly, and releases its request', async (_, error) => {
  const { server, errors } = await startServer(() => ok(laterChunks(['part 1;', 'part 2;'], { error })))
  const client = new Raw(server.port).send(request('GET', '/'))
  await client.closed
  expect(client.received).toContain('part 2;')
  expect(client.received).not.toContain('0\r\n\r\n')
  await expect(fetch(server.url).then((response) => response.text())).rejects.toThrow()
  await until(() => server.counts().requests === 0 && server.counts().connections === 0)
  const session = await http2Client(server.url)
  const stream = session.request({ ':path': '/' })
  await expect(collect(stream)).rejects.toMatchObject({ code: 'ERR_HTTP2_STREAM_ERROR' })
  expect(server.counts()).toEqual({ connections: 1, http2Sessions: 1, requests: 0 })
  expect(errors).toEqual([error, error, error])
})
