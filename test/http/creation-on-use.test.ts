import { describe, expect, test } from 'vitest'
import { BASIN, type CallOptions, errorOf, startService } from './support.ts'

const APPEND: [string, string, CallOptions] = ['POST', '/records', { json: { records: [{}] } }]
const PROTO = { headers: { 'content-type': 'svcs/proto' } }
const SSE = { headers: { accept: 'text/event-stream' } }

async function startWith(config: object) {
  const service = await startService()
  await service.call('PUT', `/v1/basins/${BASIN}`, { json: { config } })
  const streams = async () => (await service.hw.basin(BASIN).listStreams()).items.map(({ name }) => name)
  return { ...service, streams }
}

describe('svc-stream-config', () => {
  test.each(['svc', 's2'])('configures the created stream, with the prefix %s', async (prefix) => {
    const { call } = await startWith({ create_stream_on_append: true, create_stream_on_read: true })
    const headers = { [`${prefix}-stream-config`]: '{"retention_policy":{"age":60}}' }
    await call('POST', '/v1/streams/a/records', { ...APPEND[2], headers })
    await call('GET', '/v1/streams/r/records', { headers })
    for (const name of ['a', 'r']) {
      expect(await (await call('GET', `/v1/streams/${name}`)).json()).toMatchObject({
        retention_policy: { age: 60 },
      })
    }
  })

  describe('from a caller that may not create streams', () => {
    async function start() {
      const service = await startWith({ create_stream_on_append: true, create_stream_on_read: true })
      const token = await service.hw.issueAccessToken({
        id: 'writer',
        scope: { basins: { prefix: '' }, streams: { prefix: '' }, ops: ['append', 'read', 'check-tail'] },
      })
      const headers = {
        authorization: `Bearer ${token}`,
        'svc-stream-config': '{"retention_policy":{"age":60}}',
      }
      return { ...service, call: service.with({ auth: 'token' }), headers }
    }

    test.each<[string, string, string, CallOptions]>([
      ['an append', ...APPEND],
      ['an append session', 'POST', '/records', PROTO],
      ['a read', 'GET', '/records', {}],
      ['a tail check', 'GET', '/records/tail', {}],
      ['SSE', 'GET', '/records', SSE],
    ])('rejects %s that would create the stream', async (_, method, suffix, options) => {
      const { call, headers, streams } = await start()
      const all = { ...options, headers: { ...headers, ...options.headers } }
      expect(await errorOf(await call(method, `/v1/streams/t${suffix}`, all))).toMatchObject({
        status: 403,
        code: 'permission_denied',
      })
      expect(await streams()).toEqual([])
    })

    test('is ignored if the stream exists', async () => {
      const { call, headers, hw } = await start()
      await hw.basin(BASIN).createStream('t', { retentionPolicy: { ageSeconds: 604_800 } })
      expect((await call('POST', '/v1/streams/t/records', { ...APPEND[2], headers })).status).toBe(200)
      expect((await call('GET', '/v1/streams/t/records/tail', { headers })).status).toBe(200)
      expect(await hw.basin(BASIN).stream('t').config()).toMatchObject({
        retentionPolicy: { ageSeconds: 604_800 },
      })
    })

    test('does not change the 404 of a missing stream if the basin creates none', async () => {
      const { call, headers, hw } = await start()
      await hw.basin(BASIN).reconfigure({ createStreamOnAppend: false })
      const response = await call('POST', '/v1/streams/t/records', { ...APPEND[2], headers })
      expect(await errorOf(response)).toMatchObject({ status: 404, code: 'stream_not_found' })
    })
  })
})
