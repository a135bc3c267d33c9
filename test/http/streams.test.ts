import { describe, expect, test } from 'vitest'
import { BASIN, errorOf, startService, startWithStream } from './support.ts'

const INFO = { name: 't', created_at: '2025-01-01T00:00:00Z', deleted_at: null, cipher: null }
const CONFIG = {
  storage_class: 'express',
  retention_policy: { age: 604800 },
  timestamping: { mode: 'client-prefer', uncapped: false },
  delete_on_empty: { min_age_secs: 0 },
}

describe('POST /v1/streams', () => {
  test('returns 201, for a replay too', async () => {
    const { call } = await startWithStream()
    const request = { json: { stream: 't' }, headers: { 'svc-request-token': 'token' } }
    const results: unknown[] = []
    for (let i = 0; i < 2; i++) {
      const response = await call('POST', '/v1/streams', request)
      expect(await response.json()).toEqual(INFO)
      results.push([response.status, response.headers.get('svc-provision-result')])
    }
    expect(results).toEqual([
      [201, 'created'],
      [201, 'noop'],
    ])
    expect(await errorOf(await call('POST', '/v1/streams', { json: { stream: 't' } }))).toMatchObject({
      status: 409,
      code: 'resource_already_exists',
      message: 'stream `t` in basin `test-basin` already exists',
    })
  })

  test.each([
    ['a long token', { headers: { 'svc-request-token': 'x'.repeat(37) }, json: {} }, 'bad_header', 400],
    // In the order token, basin, body.
    [
      'a long token and no basin',
      { headers: { 'svc-request-token': 'x'.repeat(37) }, basin: null },
      'bad_header',
      400,
    ],
    ['a bad basin and a bad body', { basin: 'NO', body: '{' }, 'bad_header', 400],
    ['a bad name', { json: { stream: '..' } }, 'bad_json', 400],
    ['an unknown class', { json: { stream: 't', config: { storage_class: 'gold' } } }, 'bad_json', 400],
    ['retention 0', { json: { stream: 't', config: { retention_policy: { age: 0 } } } }, 'invalid', 422],
  ])('rejects %s and creates nothing', async (_, options, code, status) => {
    const { call, hw } = await startWithStream()
    expect(await errorOf(await call('POST', '/v1/streams', options))).toMatchObject({ code, status })
    expect((await hw.basin(BASIN).listStreams()).items).toHaveLength(1)
  })
})

describe('PUT /v1/streams/{stream}', () => {
  test('creates a stream, leaves it unchanged, and resets it', async () => {
    const { call } = await startWithStream()
    const results: unknown[] = []
    // A token is not read here.
    const headers = { 'svc-request-token': 'x'.repeat(37) }
    for (const json of [{ retention_policy: { age: 60 } }, { retention_policy: { age: 60 } }, undefined]) {
      const response = await call(
        'PUT',
        '/v1/streams/t',
        json === undefined ? { headers } : { json, headers },
      )
      expect(await response.json()).toEqual(INFO)
      results.push([response.status, response.headers.get('svc-provision-result')])
    }
    expect(results).toEqual([
      [201, 'created'],
      [200, 'noop'],
      [200, 'updated'],
    ])
    expect(await (await call('GET', '/v1/streams/t')).json()).toEqual(CONFIG)
  })
})

describe('the configuration, deletion and listing of streams', () => {
  test('PATCH sets, keeps and clears settings', async () => {
    const { call } = await startWithStream()
    await call('PUT', '/v1/streams/t')
    const patch = async (json: unknown) => (await call('PATCH', '/v1/streams/t', { json })).json()
    const changed = {
      ...CONFIG,
      retention_policy: { infinite: {} },
      timestamping: { mode: 'arrival', uncapped: false },
    }
    expect(await patch({ retention_policy: { infinite: {} }, timestamping: { mode: 'arrival' } })).toEqual(
      changed,
    )
    expect(await patch({})).toEqual(changed)
    expect(await patch({ retention_policy: null, timestamping: null })).toEqual(CONFIG)
  })

  test('the path is validated before the body', async () => {
    const { call } = await startWithStream()
    expect((await errorOf(await call('PATCH', '/v1/streams/%ff', { body: '{' }))).code).toBe('bad_path')
  })

  test('DELETE returns 202 once, then 404', async () => {
    const { call } = await startWithStream()
    const deleted = await call('DELETE', '/v1/streams/s')
    expect([deleted.status, await deleted.text()]).toEqual([202, ''])
    expect(await errorOf(await call('DELETE', '/v1/streams/s'))).toMatchObject({
      status: 404,
      code: 'stream_not_found',
      message: 'stream `s` in basin `test-basin` not found',
    })
    expect((await call('GET', '/v1/streams/s/records/tail')).status).toBe(404)
  })

  test.each([
    ['GET', ''],
    ['PATCH', ''],
    ['DELETE', ''],
    ['GET', '/records'],
    ['POST', '/records'],
    ['GET', '/records/tail'],
  ])('a missing stream returns 404: %s %s', async (method, suffix) => {
    const { call } = await startWithStream()
    const options =
      method === 'GET' || method === 'DELETE' ? {} : { json: suffix === '' ? {} : { records: [{}] } }
    expect(await errorOf(await call(method, `/v1/streams/none${suffix}`, options))).toMatchObject({
      status: 404,
      code: 'stream_not_found',
    })
  })

  test('lists streams in UTF-8 order, page by page', async () => {
    const { call } = await startService()
    await call('PUT', `/v1/basins/${BASIN}`)
    for (const name of ['b/2', 'b/1', 'a', 'b/\u{1f600}', 'b/\uff5e']) {
      await call('POST', '/v1/streams', { json: { stream: name } })
    }
    const page = await call('GET', '/v1/streams?prefix=b%2F&start_after=b%2F1')
    const body = (await page.json()) as { streams: { name: string }[]; has_more: boolean }
    expect(body.streams.map(({ name }) => name)).toEqual(['b/2', 'b/\uff5e', 'b/\u{1f600}'])
    expect(body.has_more).toBe(false)
    const first = (await (await call('GET', '/v1/streams?limit=1')).json()) as { has_more: boolean }
    expect(first.has_more).toBe(true)
    expect((await errorOf(await call('GET', `/v1/streams?prefix=${'x'.repeat(513)}`))).code).toBe('bad_query')
  })
})

test('names and prefixes with U+0000 are rejected', async () => {
  const { call, hw } = await startWithStream()
  const json = { stream: 'a\0' }
  const problems = [
    await errorOf(await call('PUT', '/v1/streams/a%00')),
    await errorOf(await call('POST', '/v1/streams', { json })),
    await errorOf(await call('GET', '/v1/streams?prefix=a%00')),
    await errorOf(await call('DELETE', '/v1/access-tokens/a%00')),
  ]
  expect(problems).toMatchObject([
    { status: 400, code: 'bad_path', message: expect.stringContaining('must not contain U+0000') },
    { status: 400, code: 'bad_json' },
    { status: 400, code: 'bad_query' },
    { status: 400, code: 'bad_path' },
  ])
  expect((await call('GET', '/v1/streams?start_after=a%00')).status).toBe(200)
  const basin = hw.basin(BASIN)
  await expect(basin.createStream('a\0')).rejects.toMatchObject({ code: 'invalid' })
  await expect(basin.listStreams({ prefix: '\0' })).rejects.toMatchObject({ code: 'invalid' })
})
