import { describe, expect, test } from 'vitest'
import {
  BASIN,
  BodyReader,
  bytesOf,
  errorOf,
  framesOf,
  parseSse,
  RECORDS,
  readBatchOf,
  startService,
  startWithStream,
  Upload,
} from '../http/support.ts'
import { until } from '../node/support.ts'

describe('mount prefix', () => {
  test.each([
    ['/api', '/api/v1/basins', 200],
    ['/api', '/v1/basins', 200],
    ['/api', '/apix/v1/basins', 404],
    ['/api', '/api/api/v1/basins', 404],
    ['api/', '/api/v1/basins', 200],
    ['/', '/v1/basins', 200],
    ['/a b', '/a b/v1/basins', 200],
    ['/é', '/é/v1/basins', 200],
    ['/v1', '/v1/v1/basins', 200],
    ['/v1/streams', '/v1/streams/v1/basins', 200],
    ['/api', '/api', 404],
    ['/api', '/api//v1/basins', 404],
  ])('%s: %s is %i', async (prefix, path, status) => {
    const { call } = await startService({ prefix })
    expect((await call('GET', path, { basin: null })).status).toBe(status)
  })
})

describe('basin by subdomain', () => {
  test.each([
    [`http://${BASIN}.localhost:1`, 200],
    [`http://${BASIN.toUpperCase()}.LOCALHOST:1`, 200],
    [`http://${BASIN}.localhost.:1`, 200],
    [`http://x.${BASIN}.localhost:1`, 400],
    [`http://${BASIN}.example`, 400],
    ['http://localhost', 400],
    ['http://-.localhost', 400],
  ])('%s: %i', async (origin, status) => {
    const { call } = await startWithStream()
    const response = await call('GET', `${RECORDS}/tail`, { origin, basin: null })
    expect(response.status).toBe(status)
    if (status !== 200) expect((await errorOf(response)).code).toBe('bad_header')
  })
})

describe('CORS', () => {
  test('a preflight for anything passes without authorisation, also below a prefix; its request carries the headers even when 401', async () => {
    const { call } = await startService({ open: false })
    const headers = {
      origin: 'null',
      'access-control-request-method': 'PATCH',
      'access-control-request-headers': 'authorization, content-type, s2-basin, last-event-id',
    }
    const preflight = await call('OPTIONS', RECORDS, { headers, basin: null })
    expect([
      preflight.status,
      preflight.headers.get('access-control-allow-origin'),
      preflight.headers.get('access-control-allow-headers'),
    ]).toEqual([204, 'null', headers['access-control-request-headers']])
    const refused = await call('GET', RECORDS, { headers: { origin: 'https://a.b' } })
    expect([
      refused.status,
      refused.headers.get('access-control-allow-origin'),
      refused.headers.get('access-control-allow-credentials'),
    ]).toEqual([401, 'https://a.b', 'true'])
  })
  test('cors: false adds nothing', async () => {
    const { call } = await startService({ cors: false })
    const response = await call('GET', '/v1/basins', { headers: { origin: 'https://a.b' } })
    expect([...response.headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([])
    expect((await call('OPTIONS', '/v1/basins')).status).toBe(405)
  })
})

describe('lists', () => {
  test('limits, order, has_more', async () => {
    const { call, hw } = await startService()
    await hw.createBasin(BASIN)
    const names = ['b', 'a/2', 'a/10', 'é', 'Z', '\u{1f600}', '\uffff', 'a', '\x00', ' ']
    for (const name of names) await hw.basin(BASIN).createStream(name)
    const sorted = [...names].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
    const list = async (query: string) => (await call('GET', `/v1/streams?${query}`)).json()
    const named = (page: { streams: { name: string }[] }) => page.streams.map(({ name }) => name)
    expect(named(await list('limit=0'))).toEqual(sorted)
    expect(named(await list('limit=18446744073709551615'))).toEqual(sorted)
    const paged: string[] = []
    for (let after = '', more = true; more; after = paged.at(-1)!) {
      const page = await list(`limit=3&start_after=${encodeURIComponent(after)}`)
      paged.push(...named(page))
      more = page.has_more
    }
    expect(paged).toEqual(sorted)
    expect(named(await list('prefix=a&start_after=A'))).toEqual(['a', 'a/10', 'a/2'])
    expect(await list('prefix=a&start_after=b')).toEqual({ streams: [], has_more: false })
    expect(await list('prefix=a&limit=3')).toMatchObject({ has_more: false })
    expect(await list('prefix=a&limit=2')).toMatchObject({ has_more: true })
  })
})

describe('8.5', () => {
  test('PATCH three states, and its echo', async () => {
    const { call } = await startService()
    await call('PUT', '/v1/basins/test-basin', {
      json: {
        config: { default_stream_config: { storage_class: 'standard', timestamping: { uncapped: true } } },
      },
    })
    await call('PUT', '/v1/streams/s')
    const patch = async (json: unknown) => (await call('PATCH', '/v1/streams/s', { json })).json()
    expect(await patch({})).toEqual({
      storage_class: 'standard',
      retention_policy: { age: 604800 },
      timestamping: { mode: 'client-prefer', uncapped: true },
      delete_on_empty: { min_age_secs: 0 },
    })
    expect(
      await patch({
        storage_class: 'express',
        timestamping: { mode: 'arrival', uncapped: null },
        delete_on_empty: { min_age_secs: 5 },
        retention_policy: { infinite: {} },
      }),
    ).toEqual({
      storage_class: 'express',
      retention_policy: { infinite: {} },
      timestamping: { mode: 'arrival', uncapped: true },
      delete_on_empty: { min_age_secs: 5 },
    })
    expect(
      await patch({
        storage_class: null,
        timestamping: null,
        delete_on_empty: { min_age_secs: null },
        retention_policy: null,
      }),
    ).toEqual({
      storage_class: 'standard',
      retention_policy: { age: 604800 },
      timestamping: { mode: 'client-prefer', uncapped: true },
      delete_on_empty: { min_age_secs: 0 },
    })
    const basin = async (json: unknown) => (await call('PATCH', '/v1/basins/test-basin', { json })).json()
    expect(
      await basin({
        create_stream_on_append: null,
        default_stream_config: { storage_class: null, delete_on_empty: {} },
      }),
    ).toEqual({
      default_stream_config: {
        storage_class: null,
        retention_policy: null,
        timestamping: { mode: null, uncapped: true },
        delete_on_empty: null,
      },
      stream_cipher: null,
      create_stream_on_append: false,
      create_stream_on_read: false,
    })
    expect(await basin({ default_stream_config: null })).toMatchObject({ default_stream_config: null })
    expect(await basin({ default_stream_config: { delete_on_empty: { min_age_secs: 0 } } })).toMatchObject({
      default_stream_config: { delete_on_empty: { min_age_secs: 0 }, timestamping: null },
    })
  })
  test('PATCH of an age beyond 2^53 is refused, not rounded', async () => {
    const { call } = await startWithStream()
    expect(
      (
        await call('PATCH', '/v1/streams/s', {
          headers: { 'content-type': 'application/json' },
          body: '{"retention_policy":{"age":9007199254740993}}',
        })
      ).status,
    ).toBe(422)
  })
})

describe('clients that do not read', () => {
  test('an append session whose acks nobody reads holds a bounded number of them', async () => {
    const { call, hw, errors } = await startWithStream()
    const upload = new Upload()
    const frame = Buffer.from([0, 0, 3, 0, 0x0a, 0])
    const response = await call('POST', RECORDS, {
      headers: { 'content-type': 'svcs/proto' },
      body: upload.body,
    })
    for (let i = 0; i < 30; i++) upload.write(Buffer.concat(Array.from({ length: 1000 }, () => frame)))
    await until(() => upload.isCancelled)
    const frames = await framesOf(await bytesOf(response))
    const last = frames.at(-1)!
    expect(last.kind === 'terminal' && last.status).toBe(503)
    const { seqNum } = await hw.basin(BASIN).stream('s').checkTail()
    // What was acked is there, and nothing else.
    expect(frames.length - 1).toBe(seqNum)
    expect(errors).toEqual([])
  })
})

describe('catch-up and follow through SSE and frames', () => {
  test('format base64 and raw of bytes that are no UTF-8, of commands, of line separators', async () => {
    const { call } = await startWithStream()
    const body = Buffer.from([0xff, 0xfe, 0x0d, 0x0a, 0x0a, 0xe2, 0x80, 0xa8, 0xef, 0xbb, 0xbf]).toString(
      'base64',
    )
    await call('POST', RECORDS, {
      headers: { 'svc-format': 'base64' },
      json: {
        records: [
          { body, headers: [['/w==', '']] },
          { headers: [['', 'ZmVuY2U=']] },
          { headers: [['', 'dHJpbQ==']], body: 'AAAAAAAAAAA=' },
        ],
      },
    })
    for (const [format, first, command] of [
      ['raw', '\ufffd\ufffd\r\n\n\u2028\ufeff', 'fence'],
      ['base64', body, 'ZmVuY2U='],
    ] as const) {
      const sse = parseSse(
        await (
          await call('GET', `${RECORDS}?seq_num=0&count=3`, {
            headers: { accept: 'text/event-stream', 's2-format': format },
          })
        ).text(),
      )
      expect(sse).toHaveLength(2)
      const { records } = JSON.parse(sse[0]!.data)
      expect(records[0].body).toBe(first)
      expect(Object.keys(records[1])).toEqual(['seq_num', 'timestamp', 'headers'])
      expect(records[1].headers).toEqual([['', command]])
      expect(sse[0]!.id).toBe(`2,3,${8 + 2 + 1 + 11 + 8 + 2 + 5 + 22}`)
    }
  })
  test('a compressed session', async () => {
    const { call } = await startWithStream()
    await call('POST', RECORDS, { json: { records: [{ body: 'x'.repeat(3000) }] } })
    for (const [accept, kind] of [
      ['gzip', 'gzip'],
      ['zstd;q=0, gzip', 'zstd'],
      ['*', undefined],
      ['GZIP', 'gzip'],
    ] as const) {
      const response = await call('GET', `${RECORDS}?seq_num=0&count=1`, {
        headers: { 'content-type': 's2s/proto', 'accept-encoding': accept },
      })
      expect([
        response.headers.get('content-type'),
        response.headers.get('content-encoding'),
        response.headers.get('cache-control'),
        response.headers.get('x-accel-buffering'),
      ]).toEqual(['s2s/proto', null, 'no-cache, no-transform', 'no'])
      const [frame] = await framesOf(await bytesOf(response))
      expect(frame!.kind === 'message' && frame!.compression).toBe(kind)
      expect((await readBatchOf(frame!)).bodies[0]).toHaveLength(3000)
    }
  })
  test('words: s2 with wait=0 at the tail is an empty 200, svc is 416', async () => {
    const { call } = await startWithStream()
    await call('POST', RECORDS, { json: { records: [{}] } })
    for (const headers of [{ accept: 'text/event-stream' }, { 'content-type': 's2s/proto' }]) {
      expect(
        (await call('GET', `${RECORDS}?wait=0`, { headers: { ...headers, 's2-basin': BASIN }, basin: null }))
          .status,
      ).toBe(200)
      expect(
        (
          await call('GET', `${RECORDS}?wait=0&count=1`, {
            headers: { ...headers, 's2-basin': BASIN },
            basin: null,
          })
        ).status,
      ).toBe(416)
      expect(
        (
          await call('GET', `${RECORDS}?wait=0&seq_num=2`, {
            headers: { ...headers, 's2-basin': BASIN },
            basin: null,
          })
        ).status,
      ).toBe(416)
    }
    expect(
      (await call('GET', `${RECORDS}?wait=0`, { headers: { accept: 'text/event-stream' } })).status,
    ).toBe(416)
  })
  test('s2 with wait=0 on an empty stream: exactly at the tail is 200; timestamp=0 is not a position at the tail', async () => {
    const { call } = await startWithStream()
    expect(
      (
        await call('GET', `${RECORDS}?wait=0&seq_num=0`, {
          headers: { accept: 'text/event-stream', 's2-basin': BASIN },
          basin: null,
        })
      ).status,
    ).toBe(200)
  })
  test('a wholly trimmed stream with wait=0 is 416 for unary, bounded and svc', async () => {
    const { call } = await startWithStream()
    await call('POST', RECORDS, {
      headers: { 'svc-format': 'base64' },
      json: { records: [{}, { headers: [['', 'dHJpbQ==']], body: '//////////8=' }] },
    })
    for (const query of ['seq_num=0', 'tail_offset=2', 'timestamp=0', 'seq_num=0&until=99999999999999']) {
      expect([query, (await call('GET', `${RECORDS}?${query}`)).status]).toEqual([query, 416])
      expect([
        query,
        (await call('GET', `${RECORDS}?${query}&count=1`, { headers: { accept: 'text/event-stream' } }))
          .status,
      ]).toEqual([query, 416])
    }
    const follow = new BodyReader(
      await call('GET', `${RECORDS}?seq_num=0`, { headers: { accept: 'text/event-stream' } }),
    )
    await until(() => follow.text.includes('"seq_num":2'))
    await follow.cancel()
  })
})
