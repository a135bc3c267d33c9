import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { appendBatch } from '../../src/model/append-input.ts'
import { utf8 } from '../../src/model/bytes.ts'
import type { DataFormat } from '../../src/wire/headers.ts'
import { appendAckJson, decodeAppendJson } from '../../src/wire/json-records.ts'
import { rejection } from '../model/rejection.ts'
import { outcomeOf } from './outcome.ts'

/** Decodes as an append does: the codec, then the model. */
function batchOf(text: string, format: DataFormat = 'raw') {
  const { inputs, conditions } = decodeAppendJson(utf8(text), format)
  return appendBatch(inputs, conditions)
}

const withRecord = (record: string) => `{"records":[${record}]}`
const withCondition = (member: string) => `{"records":[{}],${member}}`

describe('records', () => {
  it('decodes bodies, headers and timestamps in raw format', () => {
    const text =
      '{"records":[{"timestamp":5,"headers":[["a","1"],["a",""]],"body":"h\\u00e9"},{"body":"x"}],"match_seq_num":0}'
    expect(batchOf(text)).toMatchObject({
      records: [
        {
          timestamp: 5,
          headers: [
            [utf8('a'), utf8('1')],
            [utf8('a'), utf8('')],
          ],
          body: utf8('hé'),
          meteredBytes: 8 + 4 + 3 + 3,
          command: undefined,
        },
        { timestamp: undefined, headers: [], body: utf8('x'), meteredBytes: 9, command: undefined },
      ],
      meteredBytes: 27,
      matchSeqNum: 0,
      fencingToken: undefined,
    })
  })

  it('decodes header names, header values and bodies in base64', () => {
    const [record] = batchOf(withRecord('{"headers":[["YQ==","/w=="]],"body":"AP8="}'), 'base64').records
    expect(record).toMatchObject({
      headers: [[utf8('a'), new Uint8Array([0xff])]],
      body: new Uint8Array([0, 0xff]),
    })
  })

  it.each(['{"id":"a","total":1}', '{"Body":"x"}'])(
    'rejects a record without a known member: %s',
    (record) => {
      expect(rejection(() => batchOf(withRecord(record)))).toMatchObject({
        code: 'bad_json',
        field: 'records',
      })
    },
  )

  it.each(['{}', '{"body":"","id":1}', '{"timestamp":null,"id":1}'])('accepts %s', (record) => {
    expect(batchOf(withRecord(record)).records[0]?.body).toEqual(utf8(''))
  })

  it('treats base64 as text in raw format', () => {
    expect(batchOf(withRecord('{"body":"AP8="}')).records[0]?.body).toEqual(utf8('AP8='))
  })

  it('decodes a command in either format', () => {
    const fence = { kind: 'fence', token: 't' }
    expect(batchOf(withRecord('{"headers":[["","fence"]],"body":"t"}')).records[0]?.command).toEqual(fence)
    const encoded = withRecord('{"headers":[["","ZmVuY2U="]],"body":"dA=="}')
    expect(batchOf(encoded, 'base64').records[0]?.command).toEqual(fence)
  })

  it.each([
    ['an empty record', '{}'],
    ['a null timestamp', '{"timestamp":null}'],
    ['no headers', '{"headers":[]}'],
    ['an empty header value', '{"headers":[["a",""]]}'],
    ['a timestamp with an exponent', '{"timestamp":1e3}'],
    ['a body twice', '{"body":1,"body":"a"}'],
    ['the largest timestamp', '{"timestamp":9007199254740991}'],
    ['an unknown member', '{"body":"","what":1}'],
    ['an unknown member twice', '{"body":"","what":1,"what":{}}'],
  ])('accepts %s', (_, record) => {
    expect(outcomeOf(() => batchOf(withRecord(record)))).toBe('accepted')
  })

  it.each([
    ['null', 'null'],
    ['a string', '"body"'],
    ['an array', '[]'],
    ['null headers', '{"headers":null}'],
    ['headers as an object', '{"headers":{"a":"b"}}'],
    ['a header of one string', '{"headers":[["a"]]}'],
    ['a header of three strings', '{"headers":[["a","b","c"]]}'],
    ['an empty header', '{"headers":[[]]}'],
    ['a header that is a string', '{"headers":["ab"]}'],
    ['a header value that is a number', '{"headers":[["a",1]]}'],
    ['a header name that is null', '{"headers":[[null,"a"]]}'],
    ['a null body', '{"body":null}'],
    ['a body that is a number', '{"body":1}'],
    ['a body that is an object', '{"body":{}}'],
    ['a negative timestamp', '{"timestamp":-1}'],
    ['a fractional timestamp', '{"timestamp":1.5}'],
    ['a timestamp in a string', '{"timestamp":"1"}'],
    ['a timestamp beyond 2^64 - 1', '{"timestamp":18446744073709555000}'],
    ['a timestamp that is true', '{"timestamp":true}'],
  ])('rejects %s as a record', (_, record) => {
    expect(outcomeOf(() => decodeAppendJson(utf8(withRecord(record)), 'raw'))).toBe('400 bad_json')
    expect(outcomeOf(() => decodeAppendJson(utf8(withRecord(record)), 'base64'))).toBe('400 bad_json')
  })

  it.each(['9007199254740992', '9007199254740993', '18446744073709551615'])(
    'rejects timestamp %s without rounding it and names the limit',
    (timestamp) => {
      const append = () => batchOf(withRecord(`{"timestamp":${timestamp}}`))
      expect(outcomeOf(append)).toBe('422 invalid')
      expect(rejection(append)).toMatchObject({
        field: 'timestamp',
        message: '`timestamp` must be an integer from 0 to 9007199254740991',
      })
    },
  )
})

describe('the input', () => {
  it.each([
    ['no records', '{}'],
    ['null records', '{"records":null}'],
    ['records as an object', '{"records":{}}'],
    ['an array', '[{}]'],
    ['null', 'null'],
    ['a syntax error', '{"records":[{}]'],
    ['trailing bytes', '{"records":[{}]}]'],
    ['nothing', ''],
    ['a negative match_seq_num', withCondition('"match_seq_num":-1')],
    ['a match_seq_num in a string', withCondition('"match_seq_num":"0"')],
    ['a match_seq_num beyond 2^64 - 1', withCondition('"match_seq_num":18446744073709555000')],
    ['a fencing token that is a number', withCondition('"fencing_token":1')],
    ['a fencing token of 37 bytes', withCondition(`"fencing_token":"${'t'.repeat(37)}"`)],
    ['a fencing token of 37 bytes in 19 characters', withCondition(`"fencing_token":"${'é'.repeat(18)}t"`)],
  ])('is rejected with %s', (_, text) => {
    expect(outcomeOf(() => batchOf(text))).toBe('400 bad_json')
  })

  it('rejects ill-formed UTF-8', () => {
    const bytes = utf8(withRecord('{"body":"?"}'))
    bytes[bytes.indexOf(0x3f)] = 0xff
    expect(outcomeOf(() => decodeAppendJson(bytes, 'raw'))).toBe('400 bad_json')
  })

  it.each([
    ['nothing', '{"records":[{}]}', {}],
    ['unknown members given twice', withCondition('"what":1,"what":2'), {}],
    ['nulls', withCondition('"match_seq_num":null,"fencing_token":null'), {}],
    ['0', withCondition('"match_seq_num":0'), { matchSeqNum: 0 }],
    ['2^53 - 1', withCondition('"match_seq_num":9007199254740991'), { matchSeqNum: 9_007_199_254_740_991 }],
    ['an empty token', withCondition('"fencing_token":""'), { fencingToken: '' }],
    [
      'a token of 36 bytes',
      withCondition(`"fencing_token":"${'é'.repeat(18)}"`),
      { fencingToken: 'é'.repeat(18) },
    ],
  ])('accepts the conditions %s', (_, text, conditions) => {
    expect(decodeAppendJson(utf8(text), 'raw').conditions).toEqual({
      matchSeqNum: undefined,
      fencingToken: undefined,
      ...conditions,
    })
  })

  it('does not decode the fencing token as base64', () => {
    const { conditions } = decodeAppendJson(utf8(withCondition('"fencing_token":"!"')), 'base64')
    expect(conditions.fencingToken).toBe('!')
  })

  it('rejects a match_seq_num beyond 2^53 - 1 and names the limit', () => {
    const append = () => batchOf(withCondition('"match_seq_num":9007199254740992'))
    expect(outcomeOf(append)).toBe('422 invalid')
    expect(rejection(append)?.message).toBe('`matchSeqNum` must be an integer from 0 to 9007199254740991')
  })
})

describe('the order of checks', () => {
  it.each(['{"body":"!"}', '{"headers":[["!",""]]}', '{"headers":[["YQ==","!"]]}', '{"body":"Zg"}'])(
    'rejects invalid base64 in %s with 422',
    (record) => {
      const append = () => batchOf(withRecord(record), 'base64')
      expect(outcomeOf(append)).toBe('422 invalid')
      expect(rejection(append)?.message).toBe('invalid Base64 encoding')
    },
  )

  it.each([
    ['bad base64', '{"body":"!"}'],
    ['an unknown command', '{"headers":[["","AAAA"]]}'],
    ['a timestamp too large', '{"timestamp":9007199254740992}'],
  ])('a wrong shape after %s is 400', (_, record) => {
    const text = `{"records":[${record}],"fencing_token":1}`
    expect(outcomeOf(() => batchOf(text, 'base64'))).toBe('400 bad_json')
    expect(outcomeOf(() => batchOf(`{"records":[${record},{"body":1}]}`, 'base64'))).toBe('400 bad_json')
  })

  it('an empty batch has a valid shape and is 422', () => {
    expect(outcomeOf(() => batchOf('{"records":[]}'))).toBe('422 invalid')
  })

  it('a batch of 1001 records is 422', () => {
    expect(outcomeOf(() => batchOf(withRecord(Array(1001).fill('{}').join(','))))).toBe('422 invalid')
    expect(outcomeOf(() => batchOf(withRecord(Array(1000).fill('{}').join(','))))).toBe('accepted')
  })
})

it('keeps no more records of a batch that is too long than needed to reject it', () => {
  const text = withRecord(Array(5_000).fill('{}').join(','))
  expect(decodeAppendJson(utf8(text), 'raw').inputs).toHaveLength(1001)
  expect(outcomeOf(() => batchOf(text))).toBe('422 invalid')
  expect(outcomeOf(() => batchOf(text.replace('{}]', '1]')))).toBe('400 bad_json')
})

it('round-trips any batch in either format', () => {
  const bytes = fc.uint8Array({ maxLength: 20 })
  const name = fc.uint8Array({ minLength: 1, maxLength: 8 })
  const record = fc.record({ headers: fc.array(fc.tuple(name, bytes), { maxLength: 3 }), body: bytes })
  fc.assert(
    fc.property(fc.array(record, { minLength: 1, maxLength: 4 }), (records) => {
      const base64 = (value: Uint8Array) => Buffer.from(value).toString('base64')
      const text = JSON.stringify({
        records: records.map(({ headers, body }) => ({
          headers: headers.map((header) => header.map(base64)),
          body: base64(body),
        })),
      })
      const decoded = batchOf(text, 'base64').records.map(({ headers, body }) => ({ headers, body }))
      expect(decoded).toEqual(records)
    }),
  )
})

describe('appendAckJson', () => {
  it('writes the three positions', () => {
    const ack = {
      start: { seqNum: 0, timestamp: 0 },
      end: { seqNum: 2, timestamp: 7 },
      tail: { seqNum: 9_007_199_254_740_991, timestamp: 8 },
    }
    expect(appendAckJson(ack)).toBe(
      '{"start":{"seq_num":0,"timestamp":0},"end":{"seq_num":2,"timestamp":7},"tail":{"seq_num":9007199254740991,"timestamp":8}}',
    )
  })
})
