import { describe, expect, it } from 'vitest'
import type { AccessTokenInput } from '../../src/index.ts'
import { BASIN, type Call, startService, statusesOf } from './support.ts'

const TEXT = { 'content-type': 'text/plain' }

async function startWithTokens() {
  const service = await startService({ auth: 'token' })
  const { hw } = service
  await service.with({})('PUT', 'mine/s', { headers: TEXT, body: 'a' })
  await service.with({})('PUT', 'others/s', { headers: TEXT, body: 'a' })
  const tokenFor = async (id: string, scope: AccessTokenInput['scope'], autoPrefixStreams = false) => {
    const token = await hw.issueAccessToken({ id, scope, autoPrefixStreams })
    const call: Call = (method, path, { headers, body } = {}) =>
      service.call(method, path, {
        headers: { authorization: `Bearer ${token}`, ...headers },
        ...(body !== undefined && { body }),
      })
    return call
  }
  return { ...service, tokenFor }
}

const requests = (call: Call, name: string): Promise<Response>[] => [
  call('GET', name),
  call('GET', `${name}?offset=-1&live=long-poll`),
  call('HEAD', name),
  call('POST', name, { headers: TEXT, body: 'b' }),
  call('PUT', name, { headers: TEXT }),
  call('DELETE', `${name}-none`),
]

describe('access tokens', () => {
  it('are required', async () => {
    const { call } = await startWithTokens()
    const statuses = await statusesOf(requests(call, 'mine/s'))
    expect(statuses).toEqual([401, 401, 401, 401, 401, 401])
  })

  it('limit the streams and the operations of both protocols alike', async () => {
    const { tokenFor } = await startWithTokens()
    const scope = { basins: { exact: BASIN }, streams: { prefix: 'mine/' } } as const
    const reader = await tokenFor('reader', { ...scope, ops: ['read'] })
    expect(await statusesOf(requests(reader, 'mine/s'))).toEqual([200, 200, 200, 403, 403, 403])
    expect(await statusesOf(requests(reader, 'others/s'))).toEqual([403, 403, 403, 403, 403, 403])
    const writer = await tokenFor('writer', { ...scope, ops: ['append'] })
    expect(await statusesOf(requests(writer, 'mine/s'))).toEqual([403, 403, 403, 204, 403, 403])
    const creator = await tokenFor('creator', { ...scope, ops: ['create-stream', 'delete-stream'] })
    expect(await statusesOf(requests(creator, 'mine/s'))).toEqual([403, 403, 403, 403, 200, 404])
    const elsewhere = await tokenFor('elsewhere', {
      basins: { exact: 'another-basin' },
      streams: { prefix: '' },
      opGroups: { stream: { read: true, write: true } },
    })
    expect(await statusesOf(requests(elsewhere, 'mine/s'))).toEqual([403, 403, 403, 403, 403, 403])
  })

  it('need the permission to append for a first body, and to read for a fork', async () => {
    const { tokenFor } = await startWithTokens()
    const scope = { basins: { exact: BASIN }, streams: { prefix: 'mine/' } } as const
    const creator = await tokenFor('creator', { ...scope, ops: ['create-stream'] })
    const both = await tokenFor('both', { ...scope, ops: ['create-stream', 'append', 'read'] })
    const fork = (source: string) => ({ headers: { 'stream-forked-from': `/v1/stream/${source}` } })
    expect(
      await statusesOf([
        creator('PUT', 'mine/1'),
        creator('PUT', 'mine/2', { headers: TEXT, body: 'a' }),
        creator('PUT', 'mine/3', fork('mine/s')),
        both('PUT', 'mine/4', { headers: TEXT, body: 'a' }),
        both('PUT', 'mine/5', fork('mine/s')),
        both('PUT', 'mine/6', fork('others/s')),
      ]),
    ).toEqual([201, 403, 403, 201, 201, 403])
  })

  it('end open responses when they are revoked', async () => {
    const { hw, tokenFor } = await startWithTokens()
    const scope = { basins: { exact: BASIN }, streams: { prefix: 'mine/' }, ops: ['read'] } as const
    const call = await tokenFor('reader', scope)
    const response = await call('GET', 'mine/s?offset=now&live=sse')
    const reader = response.body!.getReader()
    await reader.read()
    await hw.revokeAccessToken('reader')
    expect((await reader.read()).done).toBe(true)
  })
})

describe('pages of other origins', () => {
  const preflight = {
    headers: {
      origin: 'https://app.example',
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'content-type,producer-id',
    },
  }

  it('may call a handler with tokens, and see the headers of the protocol', async () => {
    const { call } = await startWithTokens()
    const allowed = await call('OPTIONS', 'mine/s', preflight)
    expect([allowed.status, allowed.headers.get('access-control-allow-headers')]).toEqual([
      204,
      'content-type,producer-id',
    ])
    const { headers } = await call('HEAD', 'mine/s', { headers: { origin: 'https://app.example' } })
    expect(headers.get('access-control-allow-origin')).toBe('https://app.example')
    expect(headers.get('access-control-expose-headers')).toContain('stream-next-offset')
    expect(headers.get('cross-origin-resource-policy')).toBe('cross-origin')
  })
})
