import { describe, expect, test } from 'vitest'
import type { RequestExchange } from '../../adapters/http/index.ts'
import { HeadwaterError } from '../../src/index.ts'
import type { OPERATIONS } from '../../src/model/operations.ts'
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

describe('a handler requires a token', () => {
  test('for everything except health checks and preflights', async () => {
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

  const odd = (token: string): [string, (token: string) => string][] => [
    ['nothing', () => ''],
    ['another scheme', (valid) => `Basic ${valid}`],
    ['no scheme', (valid) => valid],
    ['no token', () => 'Bearer '],
    ['two tokens', (valid) => `Bearer ${valid} ${valid}`],
    ['a token that is longer', (valid) => `Bearer ${valid}AAAA`],
    ['a token that is shorter', (valid) => `Bearer ${valid.slice(0, -1)}`],
    ['a huge token', () => `Bearer ${'A'.repeat(100_000)}`],
    ['something else', () => `Bearer ${token}`],
  ]
  test.each(odd('hello'))('and returns 401 for %s', async (_, header) => {
    const service = await startService()
    const { token, call } = await withRequiredToken(service, 'list-basins')
    const answers = [
      await errorOf(await call('GET', '/v1/basins', { headers: { authorization: header(token) } })),
      await errorOf(await call('GET', '/v1/basins')),
    ]
    expect(answers[0]).toEqual(answers[1])
    expect(answers[0]).toMatchObject({ status: 401, code: 'authn' })
    expect(service.errors).toEqual([])
  })

  test.each(['Bearer', 'bearer', 'BEARER', 'Bearer  '])('and accepts the scheme %j', async (scheme) => {
    const service = await startService()
    const { token, call } = await withRequiredToken(service, 'list-basins')
    const headers = { authorization: `${scheme} ${token} ` }
    expect((await call('GET', '/v1/basins', { headers })).status).toBe(200)
  })

  test('before it reads or decodes a body, and checks the permission first too', async () => {
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

  test('for the name in a body', async () => {
    const service = await startService()
    const { token, call } = await withRequiredToken(service, 'create-basin')
    const create = async (basin: string) =>
      (await call('POST', '/v1/basins', { headers: bearer(token), json: { basin } })).status
    expect([await create('other-basin'), await create('test-basin')]).toEqual([403, 201])
  })

  test('for the basin that the host names', async () => {
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
    expect((await call('GET', '/v1/basins', { headers: { cookie: `token=${token}` } })).status).toBe(200)
    expect((await call('GET', '/v1/basins', { headers: bearer(token) })).status).toBe(401)
  })

  test('are rejected with a thrown HeadwaterError; other exceptions are hidden', async () => {
    const service = await startService()
    const failing = (error: Error) =>
      service.with({ auth: 'token', getToken: () => Promise.reject(error) })('GET', '/v1/basins')
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

  test('a throwing `onError` does not change the response', async () => {
    const service = await startService()
    const call = service.with({
      auth: 'token',
      getToken: () => Promise.reject(new Error('x')),
      onError: () => {
        throw new Error('log')
      },
    })
    expect((await call('GET', '/v1/basins')).status).toBe(500)
  })
})
