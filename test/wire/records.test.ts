import { describe, expect, it } from 'vitest'
import { appendBatch } from '../../src/model/append-input.ts'
import { utf8 } from '../../src/model/bytes.ts'
import type { StreamPosition } from '../../src/model/position.ts'
import { fenceRecord, meteredBytesOf, type SequencedRecord, trimRecord } from '../../src/model/record.ts'
import { ReadBatch, RecordBatch } from '../../src/storage/record-batch.ts'
import type { DataFormat } from '../../src/wire/headers.ts'
import {
  appendAckJson,
  decodeAppendJson,
  pingJson,
  positionJson,
  readBatchJson,
  tailJson,
} from '../../src/wire/json-records.ts'
import { rejection } from '../model/rejection.ts'
import { outcomeOf } from './outcome.ts'

/** Decodes as an append does: the codec, then the model. */
function appended(text: string, format: DataFormat = 'raw') {
  const { inputs, conditions } = decodeAppendJson(utf8(text), format)
  return appendBatch(inputs, conditions)
}

const withRecord = (record: string) => `{"records":[${record}]}`
const withCondition = (member: string) => `{"records":[{}],${member}}`

describe('records', () => {
  it('decodes bodies, headers and timestamps in raw format', () => {
    const text =
      '{"records":[{"timestamp":5,"headers":[["a","1"],["a",""]],"body":"h\\u00e9"},{"body":"x"}],"match_seq_num":0}'
    expect(appended(text)).toMatchObject({
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
    const [record] = appended(withRecord('{"headers":[["YQ==","/w=="]],"body":"AP8="}'), 'base64').records
    expect(record).toMatchObject({
      headers: [[utf8('a'), new Uint8Array([0xff])]],
      body: new Uint8Array([0, 0xff]),
    })
  })

  it.each(['{"id":"a","total":1}', '{"Body":"x"}'])(
    'rejects a record without a known member: %s',
    (record) => {
      expect(rejection(() => appended(withRecord(record)))).toMatchObject({
        code: 'bad_json',
        field: 'records',
      })
    },
  )

  it.each(['{}', '{"body":"","id":1}', '{"timestamp":null,"id":1}'])('accepts %s', (record) => {
    expect(appended(withRecord(record)).records[0]?.body).toEqual(utf8(''))
  })

  it('treats base64 as text in raw format', () => {
    expect(appended(withRecord('{"body":"AP8="}')).records[0]?.body).toEqual(utf8('AP8='))
  })

  it('decodes a command in either format', () => {
    const fence = { kind: 'fence', token: 't' }
    expect(appended(withRecord('{"headers":[["","fence"]],"body":"t"}')).records[0]?.command).toEqual(fence)
    const encoded = withRecord('{"headers":[["","ZmVuY2U="]],"body":"dA=="}')
    expect(appended(encoded, 'base64').records[0]?.command).toEqual(fence)
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
    expect(outcomeOf(() => appended(withRecord(record)))).toBe('accepted')
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
      const append = () => appended(withRecord(`{"timestamp":${timestamp}}`))
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
    expect(outcomeOf(() => appended(text))).toBe('400 bad_json')
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
    const append = () => appended(withCondition('"match_seq_num":9007199254740992'))
    expect(outcomeOf(append)).toBe('422 invalid')
    expect(rejection(append)?.message).toBe('`matchSeqNum` must be an integer from 0 to 9007199254740991')
  })
})

describe('the order of checks', () => {
  it.each(['{"body":"!"}', '{"headers":[["!",""]]}', '{"headers":[["YQ==","!"]]}', '{"body":"Zg"}'])(
    'rejects invalid base64 in %s with 422',
    (record) => {
      const append = () => appended(withRecord(record), 'base64')
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
    expect(outcomeOf(() => appended(text, 'base64'))).toBe('400 bad_json')
    expect(outcomeOf(() => appended(`{"records":[${record},{"body":1}]}`, 'base64'))).toBe('400 bad_json')
  })

  it('an empty batch has a valid shape and is 422', () => {
    expect(outcomeOf(() => appended('{"records":[]}'))).toBe('422 invalid')
  })

  it('a batch of 1001 records is 422', () => {
    expect(outcomeOf(() => appended(withRecord(Array(1001).fill('{}').join(','))))).toBe('422 invalid')
    expect(outcomeOf(() => appended(withRecord(Array(1000).fill('{}').join(','))))).toBe('accepted')
  })
})

it('keeps no more records of a batch that is too long than needed to reject it', () => {
  const text = withRecord(Array(5_000).fill('{}').join(','))
  expect(decodeAppendJson(utf8(text), 'raw').inputs).toHaveLength(1001)
  expect(outcomeOf(() => appended(text))).toBe('422 invalid')
  expect(outcomeOf(() => appended(text.replace('{}]', '1]')))).toBe('400 bad_json')
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

function batchOf(records: readonly SequencedRecord[], tail?: StreamPosition): ReadBatch {
  const meteredBytes = records.reduce((sum, { headers, body }) => sum + meteredBytesOf(headers, body), 0)
  const summary = { count: records.length, meteredBytes, lastSeqNum: records.at(-1)?.seqNum ?? 0 }
  return new ReadBatch(new RecordBatch(records), summary, tail)
}

const record = (body: Uint8Array, headers: SequencedRecord['headers'] = []): SequencedRecord => ({
  seqNum: 3,
  timestamp: 5,
  headers,
  body,
})

describe('readBatchJson', () => {
  it('encodes the members in order', () => {
    const batch = batchOf([record(utf8('hé'), [[utf8('a'), utf8('1')]])], { seqNum: 4, timestamp: 5 })
    expect(readBatchJson(batch, 'raw')).toBe(
      '{"records":[{"seq_num":3,"timestamp":5,"headers":[["a","1"]],"body":"hé"}],"tail":{"seq_num":4,"timestamp":5}}',
    )
    expect(readBatchJson(batch, 'base64')).toBe(
      '{"records":[{"seq_num":3,"timestamp":5,"headers":[["YQ==","MQ=="]],"body":"aMOp"}],"tail":{"seq_num":4,"timestamp":5}}',
    )
  })

  it('omits empty headers, an empty body and a missing tail', () => {
    const batch = batchOf([record(utf8(''))])
    expect(readBatchJson(batch, 'raw')).toBe('{"records":[{"seq_num":3,"timestamp":5}]}')
    expect(readBatchJson(batch, 'base64')).toBe('{"records":[{"seq_num":3,"timestamp":5}]}')
  })

  it('encodes an empty batch', () => {
    expect(readBatchJson(batchOf([]), 'raw')).toBe('{"records":[]}')
    expect(readBatchJson(batchOf([], { seqNum: 0, timestamp: 0 }), 'raw')).toBe(
      '{"records":[],"tail":{"seq_num":0,"timestamp":0}}',
    )
  })

  it('keeps zeros and empty header values', () => {
    const batch = batchOf([{ seqNum: 0, timestamp: 0, headers: [[utf8('a'), utf8('')]], body: utf8('') }])
    expect(readBatchJson(batch, 'raw')).toBe('{"records":[{"seq_num":0,"timestamp":0,"headers":[["a",""]]}]}')
  })

  it.each([
    ['a byte that never occurs', [0x61, 0xff, 0x62], 'a\ufffdb'],
    ['one replacement for each maximal part', [0xe2, 0x82, 0x41, 0xf0, 0x9f], '\ufffdA\ufffd'],
    ['an encoded surrogate', [0xed, 0xa0, 0x80], '\ufffd\ufffd\ufffd'],
    ['a leading byte order mark, kept', [0xef, 0xbb, 0xbf, 0x61], '\ufeffa'],
  ])('raw format is lossy with %s', (_, bytes, text) => {
    const batch = batchOf([record(new Uint8Array(bytes), [[new Uint8Array(bytes), new Uint8Array(bytes)]])])
    expect(JSON.parse(readBatchJson(batch, 'raw')).records[0]).toMatchObject({
      headers: [[text, text]],
      body: text,
    })
    expect(JSON.parse(readBatchJson(batch, 'base64')).records[0].body).toBe(
      Buffer.from(bytes).toString('base64'),
    )
  })

  it('encodes commands like any record', () => {
    const batch = batchOf([
      { seqNum: 0, timestamp: 1, ...fenceRecord('') },
      { seqNum: 1, timestamp: 1, ...trimRecord(258) },
    ])
    expect(readBatchJson(batch, 'base64')).toBe(
      '{"records":[{"seq_num":0,"timestamp":1,"headers":[["","ZmVuY2U="]]},' +
        '{"seq_num":1,"timestamp":1,"headers":[["","dHJpbQ=="]],"body":"AAAAAAAAAQI="}]}',
    )
    expect(readBatchJson(batch, 'raw')).toContain('"headers":[["","fence"]]}')
  })

  it('contains no line break for any records', () => {
    const batch = batchOf([record(utf8('a\nb\r\n\u0000"\\'), [[utf8('\n'), utf8('\r')]])])
    const text = readBatchJson(batch, 'raw')
    expect(text).not.toMatch(/[\r\n]/)
    expect(JSON.parse(text).records[0].body).toBe('a\nb\r\n\u0000"\\')
  })

  it('is encoded once for all readers of a live batch', () => {
    let decodings = 0
    const records = [record(utf8('x'))]
    const batch = batchOf(records)
    Object.defineProperty(batch, 'records', {
      get() {
        decodings++
        return records
      },
    })
    for (let reader = 0; reader < 3; reader++) {
      readBatchJson(batch, 'raw')
      readBatchJson(batch, 'base64')
    }
    expect(decodings).toBe(2)
  })

  it('distinguishes batches that share records', () => {
    const records = new RecordBatch([record(utf8('x'))])
    const summary = { count: 1, meteredBytes: 9, lastSeqNum: 3 }
    const live = new ReadBatch(records, summary, { seqNum: 4, timestamp: 5 })
    expect(readBatchJson(live, 'raw')).toContain('"tail"')
    expect(readBatchJson(new ReadBatch(records, summary), 'raw')).not.toContain('"tail"')
  })

  it('encodes a batch that was stored as bytes', () => {
    const data = new RecordBatch([record(utf8('x'))]).data
    const batch = new ReadBatch(new RecordBatch(undefined, [data]), {
      count: 1,
      meteredBytes: 9,
      lastSeqNum: 3,
    })
    expect(readBatchJson(batch, 'raw')).toBe('{"records":[{"seq_num":3,"timestamp":5,"body":"x"}]}')
  })
})

describe('positions', () => {
  const tail = { seqNum: 9_007_199_254_740_991, timestamp: 0 }

  it('encodes them in snake case', () => {
    expect(positionJson(tail)).toBe('{"seq_num":9007199254740991,"timestamp":0}')
    expect(tailJson(tail)).toBe('{"tail":{"seq_num":9007199254740991,"timestamp":0}}')
    expect(pingJson(12, tail)).toBe('{"timestamp":12,"tail":{"seq_num":9007199254740991,"timestamp":0}}')
  })
})
