import { fromBinary } from '@bufbuild/protobuf'
import { describe, expect, test } from 'vitest'
import { AppendAckSchema } from '../wire/gen/records_pb.ts'
import { inputMessage } from './inputs.ts'
import { bytesOf, errorOf, RECORDS, startWithStream } from './support.ts'

const PROTOBUF = 'application/protobuf'
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
      body: '{"records":[{}]}',
      headers: { 'content-type': 'APPLICATION/vnd.x+json; charset=utf-8', accept: `${PROTOBUF};q=0` },
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

  test('ignores the format of a protobuf body, and an encryption key on a plain stream', async () => {
    const { call } = await startWithStream()
    const headers = {
      'content-type': PROTOBUF,
      'svc-format': 'nonsense',
      'svc-encryption-key': 'x'.repeat(44),
    }
    expect((await call('POST', RECORDS, { body: inputMessage(['a']), headers })).status).toBe(200)
  })
})
