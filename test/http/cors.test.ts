import { describe, expect, test } from 'vitest'
import { createHandler } from '../../adapters/http/index.ts'
import { errorOf, startService, startWithStream, tailOf } from './support.ts'

const ORIGIN = 'https://page.example'

describe('CORS', () => {
  test('a preflight allows the requested method and headers, without a token', async () => {
    const service = await startService()
    const call = service.with({ auth: 'token' })
    const response = await call('OPTIONS', '/v1/streams/a%2Fb/records', {
      basin: null,
      headers: {
        origin: ORIGIN,
        'access-control-request-method': 'PATCH',
        'access-control-request-headers': 'authorization,content-type,svc-basin,s2-encryption-key',
      },
    })
    expect([response.status, await response.text()]).toEqual([204, ''])
    expect(Object.fromEntries(response.headers)).toEqual({
      'access-control-allow-origin': ORIGIN,
      'access-control-allow-credentials': 'true',
      'access-control-allow-methods': 'PATCH',
      'access-control-allow-headers': 'authorization,content-type,svc-basin,s2-encryption-key',
      'access-control-max-age': '86400',
      vary: 'origin, access-control-request-method, access-control-request-headers',
    })
  })

  test('a response exposes the headers of the protocol, with credentials', async () => {
    const { call } = await startService({ cors: true })
    const { headers } = await call('GET', '/v1/basins', { headers: { origin: ORIGIN } })
    expect(headers.get('access-control-allow-credentials')).toBe('true')
    expect(headers.get('access-control-expose-headers')!.split(', ')).toEqual(
      expect.arrayContaining([
        'svc-provision-result',
        's2-provision-result',
        'retry-after',
        'retry-after-ms',
        'headwater-append',
      ]),
    )
  })

  test('a response to a request without an origin allows any origin, without credentials', async () => {
    const { call } = await startService({ cors: true })
    const response = await call('GET', '/v1/basins')
    expect(response.headers.get('access-control-allow-origin')).toBe('*')
    expect(response.headers.has('access-control-allow-credentials')).toBe(false)
  })

  test('can be disabled', async () => {
    const service = await startService()
    const call = service.with({ auth: 'token', cors: false })
    const response = await call('GET', '/v1/basins', { headers: { origin: ORIGIN } })
    expect([...response.headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([])
    expect((await call('OPTIONS', '/v1/basins', { headers: { origin: ORIGIN } })).status).toBe(405)
  })

  test('can be limited to a list of origins', async () => {
    const service = await startService()
    const call = service.with({ auth: 'token', cors: [ORIGIN, 'http://localhost:3000'] })
    for (const [origin, allowed] of [
      [ORIGIN, ORIGIN],
      ['http://localhost:3000', 'http://localhost:3000'],
      ['http://localhost:3001', null],
      [`${ORIGIN}:8443`, null],
      ['null', null],
    ] as const) {
      const headers = { origin }
      const response = await call('GET', '/v1/basins', { headers })
      expect(response.headers.get('access-control-allow-origin')).toBe(allowed)
      expect(response.headers.get('vary')).toBe('origin')
      const preflight = await call('OPTIONS', '/v1/basins', { headers })
      expect(preflight.status).toBe(allowed === null ? 405 : 204)
    }
  })
})

describe('without authentication', () => {
  const HOST = 'http://localhost:8080'

  test.each<[string, Record<string, string>]>([
    ['another origin', { origin: ORIGIN }],
    ['another port', { origin: 'http://localhost:3000' }],
    ['another scheme and port', { origin: 'https://localhost' }],
    ['a sandboxed page', { origin: 'null' }],
    ['another site, in a request without an origin', { 'sec-fetch-site': 'cross-site' }],
    ['another port of this site, in a request without an origin', { 'sec-fetch-site': 'same-site' }],
    [
      'another origin that the host header equals',
      { origin: ORIGIN, 'sec-fetch-site': 'cross-site', host: 'page.example' },
    ],
  ])('rejects a page of %s before the request has an effect', async (_, headers) => {
    const service = await startWithStream()
    const rejected = await service.call('POST', '/v1/streams/s/records', { headers, json: { records: [{}] } })
    expect(rejected.headers.has('access-control-allow-origin')).toBe(false)
    expect(await errorOf(rejected)).toMatchObject({
      status: 403,
      code: 'permission_denied',
      message: expect.stringContaining('`--allow-origin`'),
    })
    expect(await tailOf(service)).toBe(0)
    expect((await service.call('OPTIONS', '/v1/basins', { headers })).status).toBe(405)
    expect((await service.call('GET', '/v1/basins', { headers })).status).toBe(403)
    // Nothing to protect, and a page must be reachable by a link.
    expect((await service.call('GET', '/health', { headers })).status).toBe(200)
    expect(service.errors).toEqual([])
  })

  test.each<[string, Record<string, string>]>([
    ['client that is not a browser', {}],
    ['page of the same origin', { origin: HOST }],
    ['page behind a proxy that changes the host', { origin: ORIGIN, 'sec-fetch-site': 'same-origin' }],
    ['page behind a proxy that keeps the host', { origin: ORIGIN, host: 'page.example' }],
    ['user who enters an address', { 'sec-fetch-site': 'none' }],
  ])('serves a %s', async (_, headers) => {
    const { call } = await startService()
    expect((await call('GET', '/v1/basins', { headers, origin: HOST })).status).toBe(200)
  })
})

test.each(['https://app.example/', 'app.example', 'null', '*', '', 1, null])(
  'rejects the origin %j as `invalid`',
  async (origin) => {
    const { hw } = await startService()
    expect(() => createHandler(hw, { cors: [origin as string] })).toThrow(
      expect.objectContaining({ code: 'invalid' }),
    )
    expect(() => createHandler(hw, { cors: origin as unknown as boolean })).toThrow('`cors` must be')
  },
)
