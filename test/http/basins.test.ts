import { describe, expect, test } from 'vitest'
import type { CatalogChange } from '../../src/storage/contract.ts'
import { StorageFailure } from '../../src/storage/errors.ts'
import { testStorage, wrapped } from '../support/index.ts'
import { errorOf, startService } from './support.ts'

const INFO = {
  name: 'some-basin',
  scope: 'aws:us-east-1',
  location: 'aws:us-east-1',
  state: 'active',
  created_at: '2025-01-01T00:00:00Z',
  deleted_at: null,
}
const CONFIG = {
  default_stream_config: {
    storage_class: 'express',
    retention_policy: null,
    timestamping: null,
    delete_on_empty: null,
  },
  stream_cipher: null,
  create_stream_on_append: false,
  create_stream_on_read: false,
}

describe('POST /v1/basins', () => {
  test('returns 201, and for a repetition with the same request token a noop with 200', async () => {
    const { call } = await startService()
    const request = { json: { basin: 'some-basin' }, headers: { 'svc-request-token': '' } }
    const created = await call('POST', '/v1/basins', request)
    expect([created.status, created.headers.get('svc-provision-result')]).toEqual([201, 'created'])
    expect(created.headers.get('content-type')).toBe('application/json')
    expect(await created.json()).toEqual(INFO)
    const replay = await call('POST', '/v1/basins', request)
    expect([replay.status, replay.headers.get('svc-provision-result')]).toEqual([200, 'noop'])
    expect(await replay.json()).toEqual(INFO)
  })

  test('responds with the header prefix of the request', async () => {
    const { call } = await startService()
    const headers = { 's2-request-token': 'x' }
    const created = await call('POST', '/v1/basins', { json: { basin: 'some-basin' }, headers })
    expect(created.headers.get('s2-provision-result')).toBe('created')
    expect(created.headers.has('svc-provision-result')).toBe(false)
  })

  test.each([
    ['without a token', {}, { basin: 'some-basin' }],
    ['another token', { 'svc-request-token': 'u' }, { basin: 'some-basin' }],
    [
      'another configuration',
      { 'svc-request-token': 't' },
      { basin: 'some-basin', config: { create_stream_on_read: true } },
    ],
  ])('rejects an existing basin with 409: %s', async (_, headers, json) => {
    const { call } = await startService()
    await call('POST', '/v1/basins', { json: { basin: 'some-basin' }, headers: { 'svc-request-token': 't' } })
    expect(await errorOf(await call('POST', '/v1/basins', { json, headers }))).toMatchObject({
      status: 409,
      code: 'resource_already_exists',
    })
  })

  test('requires names of 8 characters, unlike PUT', async () => {
    const { call } = await startService()
    expect(await errorOf(await call('POST', '/v1/basins', { json: { basin: 'seven-7' } }))).toMatchObject({
      status: 400,
      code: 'bad_json',
    })
    expect((await call('PUT', '/v1/basins/b')).status).toBe(201)
  })

  test.each([
    [
      'a long token',
      { json: { basin: 'some-basin' }, headers: { 'svc-request-token': 'x'.repeat(37) } },
      'bad_header',
    ],
    // The token comes before the body.
    [
      'a long token and a bad body',
      { body: '{', headers: { 'svc-request-token': 'x'.repeat(37) } },
      'bad_header',
    ],
    [
      'a token that is not UTF-8',
      { json: { basin: 'some-basin' }, headers: { 'svc-request-token': '\xff' } },
      'bad_header',
    ],
    ['no content type', { body: new TextEncoder().encode('{"basin":"some-basin"}') }, 'bad_json'],
    [
      'another content type',
      { body: '{"basin":"some-basin"}', headers: { 'content-type': 'text/plain' } },
      'bad_json',
    ],
    ['no body', { headers: { 'content-type': 'application/json' } }, 'bad_json'],
    ['no name', { json: {} }, 'bad_json'],
    ['null', { json: null }, 'bad_json'],
    ['a bad location', { json: { basin: 'some-basin', location: 'no spaces' } }, 'bad_json'],
    [
      'retention 0',
      { json: { basin: 'some-basin', config: { default_stream_config: { retention_policy: { age: 0 } } } } },
      'invalid',
    ],
    ['another scope', { json: { basin: 'some-basin', scope: 'aws:elsewhere' } }, 'invalid'],
  ])('rejects %s and creates nothing (%#)', async (_, options, code) => {
    const { call } = await startService()
    const error = await errorOf(await call('POST', '/v1/basins', options))
    expect([error.code, error.status]).toEqual([code, code === 'invalid' ? 422 : 400])
    expect(await (await call('GET', '/v1/basins')).json()).toEqual({ basins: [], has_more: false })
    expect((await call('POST', '/v1/basins', { json: { basin: 'some-basin' } })).status).toBe(201)
  })

  test('limits request tokens to 36 bytes of UTF-8', async () => {
    const { call } = await startService()
    const asBytes = (text: string) => Buffer.from(text).toString('latin1')
    const withToken = (basin: string, token: string) =>
      call('POST', '/v1/basins', { json: { basin }, headers: { 'svc-request-token': asBytes(token) } })
    expect((await withToken('first-basin', 'é'.repeat(18))).status).toBe(201)
    expect((await withToken('other-basin', 'é'.repeat(19))).status).toBe(400)
  })
})

describe('PUT /v1/basins/{basin}', () => {
  test('creates a basin, leaves it unchanged, and changes it', async () => {
    const { call } = await startService()
    const results: unknown[] = []
    for (const json of [undefined, undefined, { config: { create_stream_on_append: true } }, null]) {
      const response = await call('PUT', '/v1/basins/some-basin', json === undefined ? {} : { json })
      expect(await response.json()).toEqual(INFO)
      results.push([response.status, response.headers.get('svc-provision-result')])
    }
    expect(results).toEqual([
      [201, 'created'],
      [200, 'noop'],
      [200, 'updated'],
      [200, 'updated'],
    ])
  })

  test('ignores a body without a content type, and accepts an empty JSON body', async () => {
    const { call } = await startService()
    const bytes = new TextEncoder().encode('{"config":{"create_stream_on_append":true}}')
    expect((await call('PUT', '/v1/basins/one', { body: bytes })).status).toBe(201)
    expect(await (await call('GET', '/v1/basins/one')).json()).toEqual(CONFIG)
    const headers = { 'content-type': 'application/json' }
    expect((await call('PUT', '/v1/basins/two', { headers })).status).toBe(201)
  })

  test.each([
    ['another content type', { body: '{}', headers: { 'content-type': 'text/plain' } }, 400, 'bad_json'],
    ['a broken body', { body: '{', headers: { 'content-type': 'application/json' } }, 400, 'bad_json'],
    ['a long token', { headers: { 's2-request-token': 'x'.repeat(37) } }, 400, 'bad_header'],
    ['another scope', { json: { scope: 'aws:eu-1' } }, 422, 'invalid'],
    ['a cipher that is missing', { json: { config: { stream_cipher: 'aegis-256' } } }, 422, 'invalid'],
  ])('rejects %s', async (_, options, status, code) => {
    const { call } = await startService()
    expect(await errorOf(await call('PUT', '/v1/basins/some-basin', options))).toMatchObject({ status, code })
    expect((await call('GET', '/v1/basins/some-basin')).status).toBe(404)
  })

  test('accepts a request token, and a body with a scope', async () => {
    const { call } = await startService()
    const headers = { 'svc-request-token': 'x'.repeat(36) }
    const created = await call('PUT', '/v1/basins/some-basin', { json: { scope: 'aws:us-east-1' }, headers })
    expect(created.status).toBe(201)
  })
})

describe('the configuration and deletion of basins', () => {
  test('GET and PATCH return the whole configuration', async () => {
    const { call } = await startService()
    await call('PUT', '/v1/basins/some-basin')
    const got = await call('GET', '/v1/basins/some-basin')
    expect([got.status, await got.json()]).toEqual([200, CONFIG])
    const json = { default_stream_config: { retention_policy: { age: 60 } }, create_stream_on_read: true }
    const patched = await call('PATCH', '/v1/basins/some-basin', { json })
    expect(patched.status).toBe(200)
    expect(await patched.json()).toEqual({
      ...CONFIG,
      default_stream_config: {
        storage_class: 'express',
        retention_policy: { age: 60 },
        timestamping: null,
        delete_on_empty: null,
      },
      create_stream_on_read: true,
    })
    const cleared = await call('PATCH', '/v1/basins/some-basin', {
      json: { default_stream_config: null, create_stream_on_read: null },
    })
    expect(await cleared.json()).toEqual({ ...CONFIG, create_stream_on_read: true })
  })

  test('PATCH requires JSON', async () => {
    const { call } = await startService()
    await call('PUT', '/v1/basins/some-basin')
    expect(await errorOf(await call('PATCH', '/v1/basins/some-basin'))).toMatchObject({ code: 'bad_json' })
  })

  test('DELETE returns 202, and again during the deletion', async () => {
    let isHeld = true
    const isLast = (change: CatalogChange) => change.kind === 'delete' && change.collection === 'basins'
    const storage = wrapped(testStorage(), {}, (real) => ({
      commit: (changes) =>
        isHeld && changes.some(isLast)
          ? Promise.reject(new StorageFailure('io', 'not yet', { nothingWritten: true }))
          : real.commit(changes),
    }))
    const { call, clock } = await startService({}, { storage })
    await call('PUT', '/v1/basins/some-basin')
    await call('PUT', '/v1/streams/s', { basin: 'some-basin' })
    const deleted = call('DELETE', '/v1/basins/some-basin')
    const repeat = call('DELETE', '/v1/basins/some-basin')
    const responses = [await deleted, await repeat]
    expect(responses.map(({ status }) => status)).toEqual([202, 202])
    expect(await responses[0]!.text()).toBe('')
    isHeld = false
    await clock.advance('10m')
    expect(await errorOf(await call('GET', '/v1/basins/some-basin'))).toMatchObject({
      status: 404,
      code: 'basin_not_found',
    })
  })

  test('a basin that is being deleted can be read, but not changed or created', async () => {
    const isLast = (change: CatalogChange) => change.kind === 'delete' && change.collection === 'basins'
    const storage = wrapped(testStorage(), {}, (real) => ({
      commit: (changes) =>
        changes.some(isLast)
          ? Promise.reject(new StorageFailure('io', 'not yet', { nothingWritten: true }))
          : real.commit(changes),
    }))
    const { call } = await startService({}, { storage })
    const create = () =>
      call('POST', '/v1/basins', { json: { basin: 'some-basin' }, headers: { 'svc-request-token': 't' } })
    expect((await create()).status).toBe(201)
    await call('DELETE', '/v1/basins/some-basin')
    expect((await call('GET', '/v1/basins/some-basin')).status).toBe(200)
    expect(await (await call('GET', '/v1/basins')).json()).toMatchObject({
      basins: [{ name: 'some-basin', state: 'deleting', deleted_at: '2025-01-01T00:00:00Z' }],
    })
    const responses = [
      await call('PUT', '/v1/basins/some-basin'),
      await call('PATCH', '/v1/basins/some-basin', { json: {} }),
      await call('POST', '/v1/basins', { json: { basin: 'some-basin' } }),
      await create(),
      await call('PUT', '/v1/streams/s', { basin: 'some-basin' }),
    ]
    for (const response of responses) {
      expect(await errorOf(response)).toMatchObject({ status: 409, code: 'basin_deletion_pending' })
    }
  })

  test.each([
    ['GET', '/v1/basins/some-basin'],
    ['PATCH', '/v1/basins/some-basin'],
    ['DELETE', '/v1/basins/some-basin'],
    ['GET', '/v1/streams'],
    ['POST', '/v1/streams'],
    ['PUT', '/v1/streams/s'],
    ['GET', '/v1/streams/s'],
    ['PATCH', '/v1/streams/s'],
    ['DELETE', '/v1/streams/s'],
    ['GET', '/v1/streams/s/records'],
    ['POST', '/v1/streams/s/records'],
    ['GET', '/v1/streams/s/records/tail'],
  ])('a missing basin returns 404: %s %s', async (method, path) => {
    const { call } = await startService()
    const json = path === '/v1/streams' ? { stream: 's' } : path.endsWith('records') ? { records: [{}] } : {}
    const options = method === 'POST' || method === 'PATCH' ? { json } : {}
    expect(await errorOf(await call(method, path, { ...options, basin: 'some-basin' }))).toMatchObject({
      status: 404,
      code: 'basin_not_found',
      message: 'basin `some-basin` not found',
    })
    expect(await (await call('GET', '/v1/basins')).json()).toEqual({ basins: [], has_more: false })
  })
})

describe('GET /v1/basins', () => {
  test('lists basins in order, page by page', async () => {
    const { call } = await startService()
    for (const name of ['c', 'a', 'b', 'x']) await call('PUT', `/v1/basins/p-${name}`)
    await call('PUT', '/v1/basins/other')
    const list = async (query: string) => {
      const page = (await (await call('GET', `/v1/basins${query}`)).json()) as {
        basins: { name: string }[]
        has_more: boolean
      }
      return [page.basins.map(({ name }) => name).join(' '), page.has_more]
    }
    expect(await list('')).toEqual(['other p-a p-b p-c p-x', false])
    expect(await list('?prefix=p-&limit=2')).toEqual(['p-a p-b', true])
    expect(await list('?prefix=p-&start_after=p-b&limit=2&unknown=1')).toEqual(['p-c p-x', false])
    expect(await list('?limit=0')).toEqual(['other p-a p-b p-c p-x', false])
  })

  test.each(['prefix=UPPER', 'limit='])('rejects a malformed query with 400 bad_query: %s', async (query) => {
    const { call } = await startService()
    expect(await errorOf(await call('GET', `/v1/basins?${query}`))).toMatchObject({
      status: 400,
      code: 'bad_query',
    })
  })
})
