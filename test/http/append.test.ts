import { fromBinary } from '@bufbuild/protobuf'
import { describe, expect, test } from 'vitest'
import { AppendAckSchema } from '../../src/wire/gen/records_pb.ts'
import { inputMessage } from './inputs.ts'
import { bytesOf, type CallOptions, errorOf, RECORDS, startWithStream, tailOf } from './support.ts'

const PROTOBUF = 'application/protobuf'
const JSON_TYPE = { 'content-type': 'application/json' }
const NOW = Date.UTC(2025, 0, 1)

describe('unary append', () => {
  test('accepts JSON and returns JSON', async () => {
    const service = await startWithStream()
    const json = { records: [{ body: 'a', headers: [['k', 'v']], timestamp: 5 }, {}] }
    const response = await service.call('POST', RECORDS, { json })
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/json'])
    expect(await response.json()).toEqual({
      start: { seq_num: 0, timestamp: 5 },
      end: { seq_num: 2, timestamp: NOW },
      tail: { seq_num: 2, timestamp: NOW },
    })
    const read = await service.call('GET', `${RECORDS}?seq_num=0`)
    expect(await read.json()).toEqual({
      records: [
        { seq_num: 0, timestamp: 5, headers: [['k', 'v']], body: 'a' },
        { seq_num: 1, timestamp: NOW },
      ],
      tail: { seq_num: 2, timestamp: NOW },
    })
  })

  test.each([
    'application/json',
    'application/json; charset=utf-8',
    'APPLICATION/vnd.x+json',
    'application/json, text/plain',
  ])('accepts JSON as %s', async (type) => {
    const { call } = await startWithStream()
    const headers = { 'content-type': type }
    expect((await call('POST', RECORDS, { body: '{"records":[{}]}', headers })).status).toBe(200)
  })

  test('accepts and returns protobuf, by `content-type` and `accept` independently', async () => {
    const { call } = await startWithStream()
    const body = inputMessage(['a', 'b'])
    const binary = await call('POST', RECORDS, {
      body,
      headers: { 'content-type': PROTOBUF, accept: PROTOBUF },
    })
    expect(binary.headers.get('content-type')).toBe(PROTOBUF)
    expect(Number(fromBinary(AppendAckSchema, await bytesOf(binary)).end?.seqNum)).toBe(2)
    const mixed = await call('POST', RECORDS, { body, headers: { 'content-type': 'application/x-protobuf' } })
    expect(await mixed.json()).toMatchObject({ start: { seq_num: 2 } })
    const other = await call('POST', RECORDS, {
      json: { records: [{}] },
      headers: { accept: `${PROTOBUF};q=0` },
    })
    expect(Number(fromBinary(AppendAckSchema, await bytesOf(other)).start?.seqNum)).toBe(4)
  })

  test('decodes header names, header values and bodies as base64', async () => {
    const { call } = await startWithStream()
    const headers = { 'svc-format': ' base64 ' }
    const json = { records: [{ body: '/wA=', headers: [['', 'ZmVuY2U=']] }, { body: '/wA=' }] }
    expect(await errorOf(await call('POST', RECORDS, { json, headers }))).toMatchObject({
      status: 422,
      code: 'invalid',
    })
    expect((await call('POST', RECORDS, { json: { records: [json.records[1]] }, headers })).status).toBe(200)
    expect(await (await call('GET', `${RECORDS}?seq_num=0`, { headers })).json()).toMatchObject({
      records: [{ body: '/wA=' }],
    })
    expect(await (await call('GET', `${RECORDS}?seq_num=0`)).json()).toMatchObject({
      records: [{ body: '\ufffd\0' }],
    })
  })

  test('reports failed conditions as 412 with their own bodies, to protobuf clients too', async () => {
    const service = await startWithStream()
    const { call } = service
    const append = (json: object) =>
      call('POST', RECORDS, { json: { records: [{}], ...json }, headers: { accept: PROTOBUF } })
    const mismatch = await append({ match_seq_num: 7 })
    expect([mismatch.status, mismatch.headers.get('content-type')]).toEqual([412, 'application/json'])
    expect(await mismatch.json()).toEqual({ seq_num_mismatch: 0 })
    const fenced = await append({ fencing_token: 'x', match_seq_num: 7 })
    expect([fenced.status, await fenced.json()]).toEqual([412, { fencing_token_mismatch: '' }])
    expect((await append({ fencing_token: '', match_seq_num: 0 })).status).toBe(200)
    expect((await append({ match_seq_num: 0 })).status).toBe(412)
    expect((await append({ match_seq_num: null, fencing_token: null })).status).toBe(200)
    expect(await tailOf(service)).toBe(2)
  })

  test.each<[string, CallOptions, number, string]>([
    ['no content type', { body: inputMessage(['a']) }, 400, 'bad_json'],
    [
      'an unknown content type',
      { body: '{"records":[{}]}', headers: { 'content-type': 'text/plain' } },
      400,
      'bad_json',
    ],
    ['no body', { headers: JSON_TYPE }, 400, 'bad_json'],
    ['broken JSON', { body: '{"records":[{}]', headers: JSON_TYPE }, 400, 'bad_json'],
    ['an empty batch', { json: { records: [] } }, 422, 'invalid'],
    ['a large record', { json: { records: [{ body: 'x'.repeat(1_048_569) }] } }, 422, 'invalid'],
    [
      'bad base64',
      { json: { records: [{ body: '*' }] }, headers: { 'svc-format': 'base64' } },
      422,
      'invalid',
    ],
    [
      'an unknown format',
      { json: { records: [{}] }, headers: { 'svc-format': 'BASE64' } },
      400,
      'bad_header',
    ],
    // The format comes before the body.
    [
      'an unknown format and a bad body',
      { body: '{', headers: { ...JSON_TYPE, 'svc-format': 'x' } },
      400,
      'bad_header',
    ],
    [
      'a long key',
      { json: { records: [{}] }, headers: { 'svc-encryption-key': 'x'.repeat(45) } },
      400,
      'bad_header',
    ],
    ['an empty key', { json: { records: [{}] }, headers: { 's2-encryption-key': '' } }, 400, 'bad_header'],
    // The key comes before the format.
    [
      'a long key and a bad path',
      { body: '{', headers: { 'svc-encryption-key': 'x'.repeat(45), 'svc-format': 'x' } },
      400,
      'bad_header',
    ],
    [
      'broken protobuf',
      { body: new Uint8Array([10, 200]), headers: { 'content-type': PROTOBUF } },
      400,
      'bad_proto',
    ],
    [
      'an empty protobuf batch',
      { body: new Uint8Array(0), headers: { 'content-type': PROTOBUF } },
      422,
      'invalid',
    ],
  ])('rejects %s and stores nothing', async (_, options, status, code) => {
    const service = await startWithStream()
    expect(await errorOf(await service.call('POST', RECORDS, options))).toMatchObject({ status, code })
    expect(await tailOf(service)).toBe(0)
    const next = await service.call('POST', RECORDS, {
      json: { records: [{ body: 'ok' }], match_seq_num: 0 },
    })
    expect(next.status).toBe(200)
  })

  test('reports an invalid body before a missing stream', async () => {
    const { call } = await startWithStream()
    const missing = '/v1/streams/none/records'
    expect((await errorOf(await call('POST', missing, { json: { records: [] } }))).code).toBe('invalid')
    expect((await errorOf(await call('POST', missing, { json: { records: [{}] } }))).code).toBe(
      'stream_not_found',
    )
  })

  test('ignores the format of a protobuf body, and an encryption key on a plain stream', async () => {
    const { call } = await startWithStream()
    const headers = {
      'content-type': PROTOBUF,
      'svc-format': 'nonsense',
      'svc-encryption-key': 'x'.repeat(44),
    }
    expect((await call('POST', RECORDS, { body: inputMessage(['a']), headers })).status).toBe(200)
  })

  test('accepts the aliases of formats', async () => {
    const { call } = await startWithStream()
    const append = (format: string, body: string) =>
      call('POST', RECORDS, { json: { records: [{ body }] }, headers: { 's2-format': format } })
    expect((await append('json-binsafe', 'YQ==')).status).toBe(200)
    expect((await append('json', 'b')).status).toBe(200)
    expect(await (await call('GET', `${RECORDS}?seq_num=0`)).json()).toMatchObject({
      records: [{ body: 'a' }, { body: 'b' }],
    })
  })
})
