import { describe, expect, test } from 'vitest'
import type { RequestExchange } from '../../adapters/http/index.ts'
import { HeadwaterError } from '../../src/index.ts'
import type { OPERATIONS } from '../../src/model/access.ts'
import { errorOf, RECORDS, type Service, startService, startWithStream, tailOf, Upload } from './support.ts'

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

/** A token for the basin of the tests and these operations, and calls that require one. */
async function withRequiredToken(service: Service, ...ops: (typeof OPERATIONS)[number][]) {
  const token = await service.hw.issueAccessToken({
    id: 'of-a-test',
    scope: { basins: { exact: 'test-basin' }, streams: { prefix: '' }, ops },
  })
  return { token, call: service.with({ auth: 'token' }) }
}

describe('the token of a request', () => {
  test('is required by everything except health checks and preflights', async () => {
    const service = await startService()
    const call = service.with({ auth: 'token' })
    const rejected = await call('GET', '/v1/basins')
    expect(rejected.headers.get('www-authenticate')).toBe('Bearer')
    expect(await errorOf(rejected)).toMatchObject({ status: 401, code: 'authn' })
    expect((await call('POST', RECORDS, { json: {} })).status).toBe(401)
    expect((await call('GET', '/metrics')).status).toBe(401)
    expect((await call('GET', '/health')).status).toBe(200)
    expect((await call('OPTIONS', '/v1/basins')).status).toBe(204)
  })

  test.each<[string, (valid: string) => string]>([
    ['nothing', () => ''],
    ['another scheme', (valid) => `Basic ${valid}`],
    ['no scheme', (valid) => valid],
    ['no token', () => 'Bearer '],
    ['two tokens', (valid) => `Bearer ${valid} ${valid}`],
    ['two headers', (valid) => `Bearer ${valid}, Bearer ${valid}`],
    ['a token that is longer', (valid) => `Bearer ${valid}AAAA`],
    ['a token that is shorter', (valid) => `Bearer ${valid.slice(0, -1)}`],
    ['a huge token', () => `Bearer ${'A'.repeat(100_000)}`],
    ['something else', () => 'Bearer hello'],
  ])('is not replaced by %s: 401', async (_, header) => {
    const service = await startService()
    const { token, call } = await withRequiredToken(service, 'list-basins')
    const answer = await errorOf(
      await call('GET', '/v1/basins', { headers: { authorization: header(token) } }),
    )
    expect(answer).toMatchObject({ status: 401, code: 'authn' })
    expect(answer).toEqual(await errorOf(await call('GET', '/v1/basins')))
    expect(service.errors).toEqual([])
  })

  test.each(['Bearer', 'bearer', 'BEARER', 'Bearer  '])('may follow the scheme %j', async (scheme) => {
    const service = await startService()
    const { token, call } = await withRequiredToken(service, 'list-basins')
    const headers = { authorization: `${scheme} ${token} ` }
    expect((await call('GET', '/v1/basins', { headers })).status).toBe(200)
  })

  test('is checked, with its permission, before a body is read or decoded', async () => {
    const service = await startWithStream()
    const { token, call } = await withRequiredToken(service, 'read')
    for (const [headers, status] of [
      [{}, 401],
      [bearer(token), 403],
    ] as const) {
      const json = { ...headers, 'content-type': 'application/json' }
      const upload = new Upload()
      expect((await call('POST', RECORDS, { body: upload.body, headers: json })).status).toBe(status)
      expect(upload.body.locked).toBe(false)
      expect((await call('DELETE', '/v1/streams/%ff', { headers })).status).toBe(status)
      const coded = { ...json, 'content-encoding': 'br' }
      expect((await call('POST', RECORDS, { body: '{}', headers: coded })).status).toBe(status)
    }
    expect(await tailOf(service)).toBe(0)
  })

  test('must permit the name in a body', async () => {
    const service = await startService()
    const { token, call } = await withRequiredToken(service, 'create-basin')
    const create = async (basin: string) =>
      (await call('POST', '/v1/basins', { headers: bearer(token), json: { basin } })).status
    expect([await create('other-basin'), await create('test-basin')]).toEqual([403, 201])
  })

  test('must permit the basin that the host names', async () => {
    const service = await startWithStream()
    const { token, call } = await withRequiredToken(service, 'list-streams')
    const list = async (basin: string) =>
      call('GET', '/v1/streams', {
        headers: bearer(token),
        basin: null,
        origin: `http://${basin}.localhost:1234`,
      })
    expect((await list('test-basin')).status).toBe(200)
    expect((await list('other-basin')).status).toBe(403)
  })
})

describe('tokens from `getToken`', () => {
  const cookie = (exchange: RequestExchange) => /token=([^;]*)/.exec(exchange.header('cookie') ?? '')?.[1]

  test('are used instead of those in `authorization`', async () => {
    const service = await startService()
    const { token } = await withRequiredToken(service, 'list-basins')
    const call = service.with({ auth: 'token', getToken: async (exchange) => cookie(exchange) })
    const headers = { cookie: `token=${token}`, origin: 'https://evil.example' }
    const response = await call('GET', '/v1/basins', { headers })
    // Pages of other origins may not read what a cookie permits.
    expect([response.status, response.headers.get('access-control-allow-credentials')]).toEqual([200, null])
    expect((await call('GET', '/v1/basins', { headers: bearer(token) })).status).toBe(401)
  })

  test('are rejected with a thrown HeadwaterError; other exceptions are hidden', async () => {
    const service = await startService()
    const onError = (error: unknown) => {
      service.errors.push(error)
      throw new Error('the log is full')
    }
    const failing = (error: Error) =>
      service.with({ auth: 'token', getToken: () => Promise.reject(error), onError })('GET', '/v1/basins')
    const refusal = new HeadwaterError('rate_limited', 'too often')
    expect(await errorOf(await failing(refusal))).toEqual({
      status: 429,
      code: 'rate_limited',
      message: 'too often',
    })
    const failure = new TypeError('database password is hunter2')
    expect(await errorOf(await failing(failure))).toEqual({
      status: 500,
      code: 'other',
      message: 'internal error',
    })
    expect(service.errors).toEqual([failure])
  })
})

describe('a token that is revoked during an upload', () => {
  const JSON_TYPE = { 'content-type': 'application/json' }

  test('does not append a body that is complete afterwards', async () => {
    const service = await startWithStream()
    const { token, call } = await withRequiredToken(service, 'append')
    const upload = new Upload()
    const answer = call('POST', RECORDS, { body: upload.body, headers: { ...JSON_TYPE, ...bearer(token) } })
    await service.clock.settle()
    await service.hw.revokeAccessToken('of-a-test')
    upload.write(new TextEncoder().encode('{"records":[{"body":"x"}]}'))
    upload.end()
    expect((await answer).status).toBe(401)
    expect(await tailOf(service)).toBe(0)
  })
})
