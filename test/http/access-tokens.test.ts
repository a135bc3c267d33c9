import { describe, expect, test } from 'vitest'
import { errorOf, type Service, startService } from './support.ts'

const PATH = '/v1/access-tokens'
const SCOPE = { ops: ['read'] }

async function issue(service: Service, body: unknown): Promise<Response> {
  return service.call('POST', PATH, { json: body })
}

async function list(service: Service, query = ''): Promise<unknown> {
  const response = await service.call('GET', `${PATH}${query}`)
  expect(response.status).toBe(200)
  return response.json()
}

describe('POST access-tokens', () => {
  test('issues a token once, in a response that no cache may store', async () => {
    const service = await startService()
    const response = await issue(service, { id: 'reader', scope: SCOPE })
    expect([response.status, response.headers.get('cache-control')]).toEqual([201, 'no-store'])
    const body = (await response.json()) as { access_token: string }
    expect(Object.keys(body)).toEqual(['access_token'])
    const call = service.with({ auth: 'token' })
    const headers = { authorization: `Bearer ${body.access_token}` }
    expect((await call('GET', '/v1/basins', { headers })).status).toBe(403)
    expect((await call('GET', '/v1/basins')).status).toBe(401)
  })

  test('omitted members permit nothing and are listed explicitly', async () => {
    const service = await startService()
    await issue(service, { id: 'reader', scope: { ...SCOPE, basins: null, op_groups: null, unknown: 1 } })
    const groups = { read: false, write: false }
    expect(await list(service)).toEqual({
      access_tokens: [
        {
          id: 'reader',
          expires_at: null,
          auto_prefix_streams: false,
          scope: {
            basins: null,
            streams: null,
            access_tokens: null,
            op_groups: { account: groups, basin: groups, stream: groups },
            ops: ['read'],
          },
        },
      ],
      has_more: false,
    })
  })

  test('every member is listed as it was given, with operations in the order of the protocol', async () => {
    const service = await startService()
    const scope = {
      basins: { prefix: 'ten-' },
      streams: { prefix: 'tenant/' },
      access_tokens: { exact: 'one' },
      op_groups: { account: { read: true }, stream: { write: true, read: null } },
      ops: ['fence', 'list-basins', 'fence'],
    }
    const expiring = { expires_at: '2100-02-03T04:05:06.780123456+01:00', auto_prefix_streams: true }
    expect((await issue(service, { id: 'all/of it', scope, ...expiring })).status).toBe(201)
    expect(await list(service)).toEqual({
      access_tokens: [
        {
          id: 'all/of it',
          expires_at: expiring.expires_at,
          auto_prefix_streams: true,
          scope: {
            ...scope,
            op_groups: {
              account: { read: true, write: false },
              basin: { read: false, write: false },
              stream: { read: false, write: true },
            },
            ops: ['list-basins', 'fence'],
          },
        },
      ],
      has_more: false,
    })
  })

  test.each([
    ['no JSON', 'x', 'bad_json'],
    ['no object', '[]', 'bad_json'],
    ['no id', { scope: SCOPE }, 'bad_json'],
    ['an empty id', { id: '', scope: SCOPE }, 'bad_json'],
    ['an id of one dot', { id: '.', scope: SCOPE }, 'bad_json'],
    ['an id of 97 bytes', { id: `x${'é'.repeat(48)}`, scope: SCOPE }, 'bad_json'],
    ['no scope', { id: 'x' }, 'bad_json'],
    ['a scope of null', { id: 'x', scope: null }, 'bad_json'],
    ['an unknown operation', { id: 'x', scope: { ops: ['read', 'levitate'] } }, 'bad_json'],
    ['an operation in capitals', { id: 'x', scope: { ops: ['READ'] } }, 'bad_json'],
    ['operations that are no list', { id: 'x', scope: { ops: 'read' } }, 'bad_json'],
    ['a group that is no object', { id: 'x', scope: { op_groups: { stream: true } } }, 'bad_json'],
    [
      'a permission that is not a boolean',
      { id: 'x', scope: { op_groups: { stream: { read: 1 } } } },
      'bad_json',
    ],
    ['an empty set', { id: 'x', scope: { ...SCOPE, streams: {} } }, 'bad_json'],
    [
      'a set of both kinds',
      { id: 'x', scope: { ...SCOPE, streams: { exact: 'a', prefix: 'a' } } },
      'bad_json',
    ],
    ['a basin in capitals', { id: 'x', scope: { ...SCOPE, basins: { exact: 'Basin' } } }, 'bad_json'],
    ['a basin prefix in capitals', { id: 'x', scope: { ...SCOPE, basins: { prefix: 'B' } } }, 'bad_json'],
    [
      'a stream of 513 bytes',
      { id: 'x', scope: { ...SCOPE, streams: { exact: 'x'.repeat(513) } } },
      'bad_json',
    ],
    [
      'a token prefix of 97 bytes',
      { id: 'x', scope: { ...SCOPE, access_tokens: { prefix: 'x'.repeat(97) } } },
      'bad_json',
    ],
    ['an expiry that is no date', { id: 'x', scope: SCOPE, expires_at: 'tomorrow' }, 'bad_json'],
    ['an expiry without offset', { id: 'x', scope: SCOPE, expires_at: '2100-01-01T00:00:00' }, 'bad_json'],
    ['a day that there is not', { id: 'x', scope: SCOPE, expires_at: '2100-02-30T00:00:00Z' }, 'bad_json'],
    ['an expiry in numbers', { id: 'x', scope: SCOPE, expires_at: 4102444800 }, 'bad_json'],
    ['an expiry in the past', { id: 'x', scope: SCOPE, expires_at: '1970-01-01T00:00:00Z' }, 'invalid'],
    ['nothing that it permits', { id: 'x', scope: {} }, 'invalid'],
    [
      'groups that permit nothing',
      { id: 'x', scope: { op_groups: { basin: { read: false } }, ops: [] } },
      'invalid',
    ],
    ['auto-prefix without streams', { id: 'x', scope: SCOPE, auto_prefix_streams: true }, 'invalid'],
    [
      'auto-prefix of one stream',
      { id: 'x', scope: { ...SCOPE, streams: { exact: 'a' } }, auto_prefix_streams: true },
      'invalid',
    ],
  ])('rejects %s', async (_, body, code) => {
    const service = await startService()
    const response =
      typeof body === 'string'
        ? await service.call('POST', PATH, { body, headers: { 'content-type': 'application/json' } })
        : await issue(service, body)
    expect(await errorOf(response)).toMatchObject({ status: code === 'invalid' ? 422 : 400, code })
    expect(await list(service)).toEqual({ access_tokens: [], has_more: false })
  })

  test('rejects an id that is in use', async () => {
    const service = await startService()
    expect((await issue(service, { id: 'x', scope: SCOPE })).status).toBe(201)
    expect(await errorOf(await issue(service, { id: 'x', scope: SCOPE }))).toMatchObject({
      status: 409,
      code: 'resource_already_exists',
    })
  })
})

describe('GET access-tokens', () => {
  test('lists tokens by prefix, page by page', async () => {
    const service = await startService()
    for (const id of ['a/1', 'a/2', 'a/3', 'b']) await issue(service, { id, scope: SCOPE })
    const ids = async (query: string) => {
      const page = (await list(service, query)) as { access_tokens: { id: string }[]; has_more: boolean }
      return [page.access_tokens.map(({ id }) => id), page.has_more]
    }
    expect(await ids('')).toEqual([['a/1', 'a/2', 'a/3', 'b'], false])
    expect(await ids('?prefix=a%2F&limit=2')).toEqual([['a/1', 'a/2'], true])
    expect(await ids('?prefix=a%2F&limit=2&start_after=a%2F2')).toEqual([['a/3'], false])
  })

  test.each(['prefix', 'start_after'])('rejects a %s of 97 bytes', async (name) => {
    const service = await startService()
    const response = await service.call('GET', `${PATH}?${name}=${'x'.repeat(97)}`)
    expect(await errorOf(response)).toMatchObject({ status: 400, code: 'bad_query' })
  })
})

describe('DELETE access-tokens', () => {
  test('revokes a token, which is then rejected and no longer listed', async () => {
    const service = await startService()
    const { access_token } = (await (
      await issue(service, { id: 'a/é', scope: { ops: ['list-basins'] } })
    ).json()) as {
      access_token: string
    }
    const call = service.with({ auth: 'token' })
    const headers = { authorization: `Bearer ${access_token}` }
    expect((await call('GET', '/v1/basins', { headers })).status).toBe(200)
    const revoked = await service.call('DELETE', `${PATH}/a%2F%C3%A9`)
    expect([revoked.status, await revoked.text()]).toEqual([204, ''])
    expect((await call('GET', '/v1/basins', { headers })).status).toBe(401)
    expect(await list(service)).toEqual({ access_tokens: [], has_more: false })
    expect(await errorOf(await service.call('DELETE', `${PATH}/a%2F%C3%A9`))).toMatchObject({
      status: 404,
      code: 'access_token_not_found',
    })
  })

  test.each(['%ff', 'x'.repeat(97)])('rejects the id %s', async (id) => {
    const service = await startService()
    expect(await errorOf(await service.call('DELETE', `${PATH}/${id}`))).toMatchObject({
      status: 400,
      code: 'bad_path',
    })
  })
})
