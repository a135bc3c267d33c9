import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import {
  BASIN,
  BodyReader,
  errorOf,
  parseSse,
  RECORDS,
  startService,
  startWithStream,
} from '../http/support.ts'
import { until } from '../node/support.ts'

const JSON_TYPE = { 'content-type': 'application/json' }

describe('1.4 to 1.7', () => {
  test('HEAD on a GET route answers like GET without its body (axum `get`), or at least 405 with an Allow', async () => {
    const { call } = await startWithStream()
    expect([200, 405]).toContain((await call('HEAD', '/v1/basins')).status)
  })

  test.each([
    ['{"records":[{}],"records":[{}]}', 400, 'bad_json'],
    ['{"records":[{"body":"a","body":"b"}]}', 400, 'bad_json'],
    ['{"records":[{"x":1,"x":2}],"y":1,"y":2}', 200, ''],
    ['{"records":[{}],"match_seq_num":null,"fencing_token":null}', 200, ''],
    ['{"records":[{"timestamp":null}]}', 200, ''],
    ['{"records":[{"headers":null}]}', 400, 'bad_json'],
    ['{"records":[{"body":null}]}', 400, 'bad_json'],
    ['{"records":[{"body":1}]}', 400, 'bad_json'],
    ['{"records":[{"headers":[["a"]]}]}', 400, 'bad_json'],
    ['{"records":[{"headers":[["a","b","c"]]}]}', 400, 'bad_json'],
    ['{"records":[{"headers":[["a",null]]}]}', 400, 'bad_json'],
    ['{"records":[{"headers":{"a":"b"}}]}', 400, 'bad_json'],
    ['{"records":[{"timestamp":1.0}]}', 400, 'bad_json'],
    ['{"records":[{"timestamp":1e3}]}', 400, 'bad_json'],
    ['{"records":[{"timestamp":-1}]}', 400, 'bad_json'],
    ['{"records":[{"timestamp":-0}]}', 400, 'bad_json'],
    ['{"records":[{"timestamp":"1"}]}', 400, 'bad_json'],
    ['{"records":[{"timestamp":9007199254740991}]}', 200, ''],
    ['{"records":[{"timestamp":9007199254740992}]}', 422, 'invalid'],
    ['{"records":[{"timestamp":18446744073709551615}]}', 422, 'invalid'],
    ['{"records":[{"timestamp":18446744073709551616}]}', 400, 'bad_json'],
    ['{"records":[{"timestamp":99999999999999999999999999999}]}', 400, 'bad_json'],
    ['{"records":[{}],"match_seq_num":9007199254740992}', 422, 'invalid'],
    ['{"records":[{}],"match_seq_num":1e0}', 400, 'bad_json'],
    ['{"records":[]}', 422, 'invalid'],
    ['{}', 400, 'bad_json'],
    ['[]', 400, 'bad_json'],
    ['null', 400, 'bad_json'],
    ['', 400, 'bad_json'],
    ['{"records":[{}]} x', 400, 'bad_json'],
    ['{"records":[{}]}{}', 400, 'bad_json'],
    ['{"records":[{},]}', 400, 'bad_json'],
    ["{'records':[{}]}", 400, 'bad_json'],
    ['{"records":[{"body":"\\ud800"}]}', 400, 'bad_json'],
    ['{"records":[{"body":"a\nb"}]}', 400, 'bad_json'],
    ['\ufeff{"records":[{}]}', 400, 'bad_json'],
    [`{"records":[{}],"x":${'['.repeat(100_000)}${']'.repeat(100_000)}}`, 400, 'bad_json'],
    [`{"records":[{}],"x":${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}}`, 400, 'bad_json'],
    [`{"records":[{}],"x":${'['.repeat(100)}${']'.repeat(100)}}`, 200, ''],
    [`{"records":[{}],"x":1${'0'.repeat(1_000_000)}}`, 200, ''],
    [`{"records":[{}],"fencing_token":"${'x'.repeat(37)}"}`, 400, 'bad_json'],
    [`{"records":[{}],"fencing_token":"${'é'.repeat(19)}"}`, 400, 'bad_json'],
    ['{"records":[{"headers":[["","fence"]],"body":"x"}],"match_seq_num":0}', 200, ''],
    ['{"records":[{"headers":[["","Fence"]]}]}', 422, 'invalid'],
    ['{"records":[{"headers":[["",""]]}]}', 422, 'invalid'],
    ['{"records":[{"headers":[["","fence"],["a","b"]]}]}', 422, 'invalid'],
    ['{"records":[{"headers":[["","trim"]],"body":"1234567"}]}', 422, 'invalid'],
    [`{"records":[{"headers":[["","fence"]],"body":"${'x'.repeat(37)}"}]}`, 422, 'invalid'],
    [`{"records":[${'{},'.repeat(1000)}{}]}`, 422, 'invalid'],
    [`{"records":[{"body":"${'x'.repeat(1_048_569)}"}]}`, 422, 'invalid'],
    [`{"records":[{"body":"${'x'.repeat(1_048_568)}"}]}`, 200, ''],
    [`{"records":[{"body":"${'x'.repeat(2_097_152)}"}]}`, 400, 'bad_json'],
  ])('append %.60s: %i %s', async (body, status, code) => {
    const service = await startWithStream()
    const response = await service.call('POST', RECORDS, { headers: JSON_TYPE, body })
    const text = await response.text()
    expect([response.status, JSON.parse(text).code ?? '', response.headers.get('content-type')]).toEqual([
      status,
      code,
      'application/json',
    ])
    const { seqNum } = await service.hw.basin(BASIN).stream('s').checkTail()
    expect(seqNum > 0).toBe(status === 200)
    expect(service.errors).toEqual([])
  })

  test.each([
    ['YQ==', true],
    ['YQ', false],
    ['YQ=', false],
    ['YR==', false],
    ['Y Q==', false],
    ['YQ==\\n', false],
    ['_-8=', false],
    ['', true],
    ['====', false],
    ['YQ==YQ==', false],
  ])('base64 %s', async (body, ok) => {
    const { call } = await startWithStream()
    const response = await call('POST', RECORDS, {
      headers: { ...JSON_TYPE, 'svc-format': ' base64 ' },
      body: `{"records":[{"body":"${body}"}]}`,
    })
    expect(response.status).toBe(ok ? 200 : 422)
  })

  test.each([
    ['seq_num=0&seq_num=0', 400],
    ['seq_num=', 400],
    ['seq_num=-1', 400],
    ['seq_num=%2B1', 400],
    ['seq_num=1.0', 400],
    ['seq_num=1e2', 400],
    ['seq_num=0x1', 400],
    ['seq_num=18446744073709551616', 400],
    ['seq_num=18446744073709551615', 422],
    ['timestamp=9007199254740992', 422],
    ['tail_offset=18446744073709551615', 200],
    ['seq_num=0&count=18446744073709551615&bytes=18446744073709551615&until=18446744073709551615', 200],
    ['seq_num=0&clamp=1', 400],
    ['seq_num=0&clamp=', 400],
    ['seq_num=0&clamp=TRUE', 400],
    ['seq_num=0&wait=4294967296', 400],
    ['seq_num=0&wait=4294967295', 200],
    ['seq_num=0&wait=-1', 400],
    ['seq_num=0&unknown=1&unknown=2', 200],
    ['seq_num=0&timestamp=0', 422],
    ['seq_num=0&tail_offset=0', 422],
    ['timestamp=5&until=5', 422],
    ['timestamp=5&until=18446744073709551615', 200],
    ['seq_num=9&until=0', 416],
    ['seq_num=0&until=0', 200],
    ['seq_num=0&count=0', 200],
    ['seq_num=0&bytes=0', 200],
    ['count=0', 416],
    ['timestamp=0', 200],
    ['seq_num=1&count=1', 416],
    ['seq_num=2&clamp=true&count=1', 416],
    ['seq_num=2&wait=1', 416],
    ['seq_num=0&bytes=8', 200],
    ['%73eq_num=0', 200],
    ['seq_num=0&%73eq_num=0', 400],
    ['seq_num=0;count=1', 400],
    ['seq_num=%00', 400],
    ['seq_num=\u0661', 400],
  ])('read ?%s: %i, as JSON, SSE and frames', async (query, status) => {
    const { call, errors } = await startWithStream()
    await call('POST', RECORDS, { json: { records: [{ body: 'x', timestamp: 10 }] } })
    for (const headers of [
      {},
      { accept: 'text/event-stream' },
      { 'content-type': 'svcs/proto' },
      { accept: 'application/protobuf' },
    ]) {
      const response = await call('GET', `${RECORDS}?${query}`, { headers })
      expect.soft([query, headers, response.status]).toEqual([query, headers, status])
      if (status !== 200) expect(response.headers.get('content-type')).toBe('application/json')
      await response.body?.cancel()
    }
    expect(errors).toEqual([])
  })

  test.each([
    'application/json',
    'Application/JSON; charset=utf-8',
    'application/vnd.x+json',
    'application/json, text/plain',
    ' application/json ;x',
  ])('content type %s is JSON', async (type) => {
    const { call } = await startWithStream()
    expect(
      (await call('POST', RECORDS, { headers: { 'content-type': type }, body: '{"records":[{}]}' })).status,
    ).toBe(200)
  })
  test.each([
    'text/plain',
    'text/plain, application/json',
    'json',
    'application/jsonx',
    '*/*',
    'application/+json',
  ])('content type %s is not', async (type) => {
    const { call } = await startWithStream()
    expect(
      await errorOf(
        await call('POST', RECORDS, { headers: { 'content-type': type }, body: '{"records":[{}]}' }),
      ),
    ).toMatchObject({ status: 400, code: 'bad_json' })
  })

  test('a bomb of a body is bad_json and spends no memory', async () => {
    const { call } = await startWithStream()
    const body = gzipSync(Buffer.alloc(500_000_000, 32))
    const before = process.memoryUsage().arrayBuffers
    expect(
      await errorOf(
        await call('POST', RECORDS, { headers: { ...JSON_TYPE, 'content-encoding': 'gzip' }, body }),
      ),
    ).toMatchObject({ status: 400, code: 'bad_json' })
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(20_000_000)
  })

  test('the message for a basin header that is no UTF-8 names the header as it is called', async () => {
    const { call } = await startWithStream()
    expect(
      (await errorOf(await call('GET', RECORDS, { headers: { 's2-basin': '\xff\xfe' }, basin: null })))
        .message,
    ).toMatch(/^Invalid header `s2-basin`: .*not UTF-8/)
  })
  test('the message for a wrong format, too', async () => {
    const { call } = await startWithStream()
    expect((await errorOf(await call('GET', RECORDS, { headers: { 'svc-format': 'x' } }))).message).toMatch(
      /svc-format/,
    )
  })
})

describe('words', () => {
  test('a header of somebody else that begins like a word does not change the word of the response', async () => {
    const { call } = await startService()
    const response = await call('POST', '/v1/basins', {
      json: { basin: 'some-basin' },
      headers: { 's2-request-token': 't', 'svc-trace-id': '1' },
    })
    expect(response.headers.get('s2-provision-result')).toBe('created')
  })
  test('nor the content type of a session that asked for s2s/proto', async () => {
    const { call } = await startWithStream()
    const response = await call('GET', RECORDS, {
      headers: { 'content-type': 's2s/proto', 'svc-trace-id': '1', 's2-basin': BASIN },
      basin: null,
    })
    expect(response.headers.get('content-type')).toBe('s2s/proto')
    await response.body?.cancel()
  })
})

describe('8', () => {
  test.each([
    [undefined, null],
    [undefined, {}],
    [{}, { create_stream_on_append: false }],
    [{}, { default_stream_config: {} }],
    [{}, { default_stream_config: { timestamping: {} } }],
    [{ default_stream_config: null, stream_cipher: null }, undefined],
  ])('replay of a creation is a noop: %j then %j', async (first, second) => {
    const { call } = await startService()
    const post = (config: unknown) =>
      call('POST', '/v1/basins', {
        json: { basin: 'some-basin', config },
        headers: { 'svc-request-token': '' },
      })
    expect((await post(first)).status).toBe(201)
    const again = await post(second)
    expect([again.status, again.headers.get('svc-provision-result')]).toEqual([200, 'noop'])
  })

  test('an append over HTTP to a missing stream does not make an in-process append fail that may create it', async () => {
    const { call, hw } = await startService()
    await hw.createBasin(BASIN)
    const [http, inProcess] = await Promise.allSettled([
      call('POST', RECORDS, { json: { records: [{}] } }),
      hw.basin(BASIN).stream('s').append('x'),
    ])
    expect.soft(http.status === 'fulfilled' && [200, 404].includes(http.value.status)).toBe(true)
    expect(inProcess.status === 'rejected' ? String(inProcess.reason) : 'ok').toBe('ok')
  })

  test('nor does an in-process append that creates stream and basin let HTTP create what the basin forbids', async () => {
    const { call, hw } = await startService()
    await hw.createBasin(BASIN)
    const [local, http] = await Promise.allSettled([
      hw.basin(BASIN).stream('t').append('x'),
      call('POST', '/v1/streams/t/records', { json: { records: [{}] } }),
    ])
    expect([local.status, http.status === 'fulfilled' && http.value.status]).toEqual(['fulfilled', 200])
  })

  test('two creations on first use, each with its configuration: the one that is told 200 gets its own or the stream of the other', async () => {
    const { call, hw } = await startService()
    await hw.createBasin(BASIN, { createStreamOnAppend: true })
    const bad = call('POST', RECORDS, {
      json: { records: [{}] },
      headers: { 'svc-stream-config': '{"timestamping":{"mode":"client-require"}}' },
    })
    expect((await bad).status).toBe(422)
  })
})

describe('5.8 resume', () => {
  test.each([
    '',
    ' ',
    '1',
    '1,2',
    '1,2,3,4',
    'a,b,c',
    '1, 2,3',
    '-1,0,0',
    '1,2,',
    '18446744073709551616,0,0',
    '1.0,0,0',
    '0x1,0,0',
    '1,2,3;',
  ])('Last-Event-ID %j is bad_header for SSE, nothing else', async (id) => {
    const { call } = await startWithStream()
    await call('POST', RECORDS, { json: { records: [{}, {}, {}] } })
    const sse = await call('GET', `${RECORDS}?seq_num=0&count=1`, {
      headers: { accept: 'text/event-stream', 'last-event-id': id },
    })
    expect(await errorOf(sse)).toMatchObject({ status: 400, code: 'bad_header' })
    expect(
      (await call('GET', `${RECORDS}?seq_num=0&count=1`, { headers: { 'last-event-id': id } })).status,
    ).toBe(200)
  })
  test.each([
    ['0,1,8', 'seq_num=0&count=3', [1, 2], 200],
    ['0,3,24', 'seq_num=0&count=3', [], 200],
    ['2,3,24', 'seq_num=0&count=3', [], 416],
    ['2,0,0', 'seq_num=0&count=3', [], 416],
    ['9007199254740991,0,0', 'seq_num=0&count=1', [], 416],
    ['0,18446744073709551615,18446744073709551615', 'seq_num=0&count=3', [], 200],
    ['0,1,8', 'timestamp=5&until=5', [], 200],
    ['0,1,8', 'seq_num=0&timestamp=0', [], 422],
    ['7,0,0', 'seq_num=0&clamp=true&count=1', [], 416],
    ['0,1,8', 'timestamp=0&count=9', [1, 2], 200],
    ['0,1,8', 'bytes=16', [1], 200],
  ])('Last-Event-ID %s with %s', async (id, query, seqNums, status) => {
    const { call } = await startWithStream()
    await call('POST', RECORDS, { json: { records: [{ timestamp: 5 }, { timestamp: 5 }, { timestamp: 5 }] } })
    const response = await call('GET', `${RECORDS}?${query}`, {
      headers: { accept: 'text/event-stream', 'last-event-id': id },
    })
    expect(response.status).toBe(status)
    const text = await response.text()
    if (status !== 200) return
    const events = parseSse(text)
    expect(events.at(-1)).toEqual({ event: undefined, id: undefined, data: '[DONE]' })
    const got = events
      .filter(({ event }) => event === 'batch')
      .flatMap(({ data }) => JSON.parse(data).records.map((r: { seq_num: number }) => r.seq_num))
    expect(got).toEqual(seqNums)
  })
})

describe('5.5 with wait', () => {
  test('count=0 with wait waits, and the first live record ends it', async () => {
    const { call } = await startWithStream()
    const reader = new BodyReader(
      await call('GET', `${RECORDS}?count=0&wait=60`, { headers: { accept: 'text/event-stream' } }),
    )
    await until(() => reader.text.includes('ping'))
    await call('POST', RECORDS, { json: { records: [{}] } })
    await reader.ended
    expect(parseSse(reader.text).map(({ event }) => event)).toEqual(['ping', undefined])
  })
})
