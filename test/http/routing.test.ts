import { describe, expect, test } from 'vitest'
import { createHandler } from '../../adapters/http/index.ts'
import { RECORDS, startService } from './support.ts'

describe('routes', () => {
  test.each([
    ['DELETE', '/v1/basins', 'GET, HEAD, POST'],
    ['POST', '/v1/basins/some-basin', 'GET, HEAD, PUT, PATCH, DELETE'],
    ['HEAD', '/v1/access-tokens/x', 'DELETE'],
    ['PUT', RECORDS, 'GET, HEAD, POST'],
    ['POST', `${RECORDS}/tail`, 'GET, HEAD'],
    ['POST', '/health', 'GET, HEAD'],
  ])('reject another method on a known path with 405: %s %s', async (method, path, allow) => {
    const { call } = await startService()
    const response = await call(method, path)
    expect([response.status, response.headers.get('allow')]).toEqual([405, allow])
    const error = { code: 'method_not_allowed', message: `this path supports only ${allow}` }
    expect(await response.text()).toBe(method === 'HEAD' ? '' : JSON.stringify(error))
  })
})

describe('mounting', () => {
  test.each(['/streams', 'streams', '/streams/'])('works with and without its prefix: %s', async (prefix) => {
    const { call } = await startService({ prefix })
    expect((await call('GET', '/streams/v1/basins')).status).toBe(200)
    expect((await call('GET', '/v1/basins')).status).toBe(200)
    expect((await call('GET', '/streams/health')).status).toBe(200)
    expect((await call('GET', '/other/v1/basins')).status).toBe(404)
    expect((await call('GET', '/streamsv1/basins')).status).toBe(404)
  })

  test.each([
    ['/', '/v1/basins', 200],
    ['/a b', '/a b/v1/basins', 200],
    ['/é', '/é/v1/basins', 200],
    // The prefix may look like a path of the protocol.
    ['/v1', '/v1/v1/basins', 200],
    ['/v1', '/v1/basins', 200],
    ['/v1/streams', '/v1/streams/v1/basins', 200],
    ['/api', '/api', 404],
    ['/api', '/api//v1/basins', 404],
    ['/api', '/api/api/v1/basins', 404],
  ])('under %s makes GET %s be %i', async (prefix, path, status) => {
    const { call } = await startService({ prefix })
    expect((await call('GET', path, { basin: null })).status).toBe(status)
  })
})

describe('options', () => {
  test.each([
    { limits: { bodyBytes: -1 } },
    { limits: { bodyBytes: 3_000_000 } },
    { limits: { bodyBytes: Number.NaN } },
    { limits: { bodybytes: 1 } as never },
    { Auth: 'none' } as never,
    { cors: 'false' as never },
    { basinDomains: 'localhost' as never },
    null as never,
  ])('are rejected if they are invalid: %o', async (options) => {
    const { hw } = await startService()
    expect(() => createHandler(hw, options)).toThrow(expect.objectContaining({ code: 'invalid' }))
  })

  test.each<[string, unknown, string]>([
    ['nothing', undefined, ''],
    ['a Promise of an engine', Promise.resolve(), '; got a Promise: await it'],
  ])('reject %s in place of an engine', (_, hw, hint) => {
    expect(() => createHandler(hw as never)).toThrow(
      expect.objectContaining({
        code: 'invalid',
        message: `a handler needs an open engine: \`createHandler(await open({ storage }))\`${hint}`,
      }),
    )
  })
})
