import { expect, test } from 'vitest'
import { errorOf, type Service, startService } from './support.ts'

const PATH = '/v1/access-tokens'
const SCOPE = { ops: ['read'] }

function issue(service: Service, body: unknown): Promise<Response> {
  return service.call('POST', PATH, { json: body })
}

async function list(service: Service, query = '') {
  const response = await service.call('GET', `${PATH}${query}`)
  expect(response.status).toBe(200)
  return (await response.json()) as { access_tokens: { id: string }[]; has_more: boolean }
}

test('a token is issued once, in a response that no cache may store, until it is revoked', async () => {
  const service = await startService()
  const response = await issue(service, { id: 'a/é', scope: { ops: ['list-basins'] } })
  expect([response.status, response.headers.get('cache-control')]).toEqual([201, 'no-store'])
  const body = (await response.json()) as { access_token: string }
  expect(Object.keys(body)).toEqual(['access_token'])
  expect(await errorOf(await issue(service, { id: 'a/é', scope: SCOPE }))).toMatchObject({
    status: 409,
    code: 'resource_already_exists',
  })
  const headers = { authorization: `Bearer ${body.access_token}` }
  const use = async () => (await service.with({ auth: 'token' })('GET', '/v1/basins', { headers })).status
  expect(await use()).toBe(200)
  const revoked = await service.call('DELETE', `${PATH}/a%2F%C3%A9`)
  expect([revoked.status, await revoked.text()]).toEqual([204, ''])
  expect(await use()).toBe(401)
  expect(await list(service)).toEqual({ access_tokens: [], has_more: false })
})

const NONE = { read: false, write: false }
const FULL = {
  basins: { prefix: 'ten-' },
  streams: { prefix: 'tenant/' },
  access_tokens: { exact: 'one' },
  op_groups: { account: { read: true }, stream: { write: true, read: null } },
  ops: ['fence', 'list-basins', 'fence'],
}
const EXPIRING = { expires_at: '2100-02-03T04:05:06.780123456+01:00', auto_prefix_streams: true }

test.each([
  [
    'what is omitted, as what permits nothing',
    { scope: { ...SCOPE, basins: null, op_groups: null, unknown: 1 } },
    {
      expires_at: null,
      auto_prefix_streams: false,
      scope: {
        basins: null,
        streams: null,
        access_tokens: null,
        op_groups: { account: NONE, basin: NONE, stream: NONE },
        ops: ['read'],
      },
    },
  ],
  [
    'every member as it was given, with operations in the order of the protocol',
    { ...EXPIRING, scope: FULL },
    {
      ...EXPIRING,
      scope: {
        ...FULL,
        op_groups: {
          account: { read: true, write: false },
          basin: NONE,
          stream: { read: false, write: true },
        },
        ops: ['list-basins', 'fence'],
      },
    },
  ],
])('lists %s', async (_, given, listed) => {
  const service = await startService()
  expect((await issue(service, { id: 'x', ...given })).status).toBe(201)
  expect(await list(service)).toEqual({ access_tokens: [{ id: 'x', ...listed }], has_more: false })
})
