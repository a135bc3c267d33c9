import { describe, expect, test } from 'vitest'
import { startService, startWithStream } from './support.ts'

const ORIGIN = 'https://page.example'

describe('CORS', () => {
  test('a preflight allows what it is asked, without authorisation', async () => {
    const service = await startService()
    const call = service.with({ open: false })
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

  test.each([
    ['GET', '/v1/basins', 200],
    ['GET', '/v1/basins/missing-basin', 404],
    ['GET', '/nowhere', 404],
    ['DELETE', '/v1/basins', 405],
    ['GET', '/v1/streams/s/records', 416],
    ['GET', '/health', 200],
  ])('every response names the origin: %s %s', async (method, path, status) => {
    const { call } = await startWithStream()
    const response = await call(method, path, { headers: { origin: ORIGIN } })
    expect(response.status).toBe(status)
    expect(response.headers.get('access-control-allow-origin')).toBe(ORIGIN)
    expect(response.headers.get('access-control-allow-credentials')).toBe('true')
    expect(response.headers.get('vary')).toContain('origin')
    const exposed = response.headers.get('access-control-expose-headers')!.split(', ')
    expect(exposed).toEqual(
      expect.arrayContaining([
        'svc-provision-result',
        's2-provision-result',
        'retry-after',
        'retry-after-ms',
      ]),
    )
  })

  test('a refusal and a session name the origin too', async () => {
    const service = await startWithStream()
    const headers = { origin: ORIGIN }
    const refused = await service.with({ open: false })('GET', '/v1/basins', { headers })
    expect([refused.status, refused.headers.get('access-control-allow-origin')]).toEqual([401, ORIGIN])
    const sse = await service.call('GET', '/v1/streams/s/records', {
      headers: { ...headers, accept: 'text/event-stream' },
    })
    expect([sse.status, sse.headers.get('access-control-allow-origin')]).toEqual([200, ORIGIN])
    await sse.body!.cancel()
  })

  test('without an origin, anybody without credentials', async () => {
    const { call } = await startService()
    const response = await call('GET', '/v1/basins')
    expect(response.headers.get('access-control-allow-origin')).toBe('*')
    expect(response.headers.has('access-control-allow-credentials')).toBe(false)
  })

  test('can be turned off', async () => {
    const { call } = await startService({ cors: false })
    const response = await call('GET', '/v1/basins', { headers: { origin: ORIGIN } })
    expect([...response.headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([])
    expect((await call('OPTIONS', '/v1/basins', { headers: { origin: ORIGIN } })).status).toBe(405)
  })
})
