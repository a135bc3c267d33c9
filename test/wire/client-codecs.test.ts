import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { appendBatch, type RecordInput } from '../../src/model/append-input.ts'
import { decodeAppendAck, decodeReadBatch } from '../../src/wire/decode-records.ts'
import { encodeAppendInput } from '../../src/wire/encode-append.ts'
import { decodeError } from '../../src/wire/errors.ts'
import { AppendAckSchema, AppendInputSchema, ReadBatchSchema } from '../../src/wire/gen/records_pb.ts'
import { Malformed } from '../../src/wire/json.ts'
import { queryText, readQueryParts } from '../../src/wire/query.ts'
import { EventParser } from '../../src/wire/sse.ts'

const INPUTS: readonly RecordInput[] = [
  '',
  'text',
  { body: 'x'.repeat(300), timestamp: 0 },
  {
    headers: [
      ['name', 'value'],
      ['other', ''],
    ],
    timestamp: Number.MAX_SAFE_INTEGER,
  },
]

describe('an append input', () => {
  it.each([{}, { matchSeqNum: 0, fencingToken: '' }, { matchSeqNum: 2 ** 40, fencingToken: 'ü' }])(
    'is what the generated code decodes (%j)',
    (conditions) => {
      const batch = appendBatch(INPUTS)
      const message = fromBinary(AppendInputSchema, encodeAppendInput(batch, conditions))
      expect(message.matchSeqNum).toBe(
        conditions.matchSeqNum === undefined ? undefined : BigInt(conditions.matchSeqNum),
      )
      expect(message.fencingToken).toBe(conditions.fencingToken)
      expect(message.records).toHaveLength(INPUTS.length)
      for (const [i, { timestamp, headers, body }] of message.records.entries()) {
        const expected = batch.records[i]!
        expect(timestamp).toBe(expected.timestamp === undefined ? undefined : BigInt(expected.timestamp))
        expect(body).toEqual(new Uint8Array(expected.body))
        expect(headers.map(({ name, value }) => [name, value])).toEqual(
          expected.headers.map(([name, value]) => [new Uint8Array(name), new Uint8Array(value)]),
        )
      }
    },
  )
})

describe('a response in protobuf', () => {
  it('is decoded as the generated code encodes it', () => {
    const body = new Uint8Array([1, 2])
    const batch = create(ReadBatchSchema, {
      records: [
        { seqNum: 0n, timestamp: 0n, headers: [{ name: body, value: body }], body },
        { seqNum: 300n },
      ],
      tail: { seqNum: 301n, timestamp: 7n },
    })
    const { records, tail } = decodeReadBatch(toBinary(ReadBatchSchema, batch))
    expect(records[0]).toEqual({ seqNum: 0, timestamp: 0, headers: [[body, body]], body })
    expect(records[1]).toMatchObject({ seqNum: 300, headers: [] })
    expect(tail).toEqual({ seqNum: 301, timestamp: 7 })
    const ack = create(AppendAckSchema, {
      start: {},
      end: { seqNum: 1n },
      tail: { seqNum: 1n, timestamp: 2n },
    })
    expect(decodeAppendAck(toBinary(AppendAckSchema, ack))).toEqual({
      start: { seqNum: 0, timestamp: 0 },
      end: { seqNum: 1, timestamp: 0 },
      tail: { seqNum: 1, timestamp: 2 },
    })
  })

  it.each([[[0x0a, 5]], [[0x0a, 2, 0x08]], [[0x0f]], [[0x12, 2, 0x08, 0x80]]])(
    'is rejected if malformed: %j',
    (bytes) => {
      expect(() => decodeReadBatch(new Uint8Array(bytes))).toThrow(Malformed)
    },
  )
})

describe('the query of a read', () => {
  it.each([
    [{ seqNum: 0, waitMs: 0 }, 'session', '?seq_num=0&count=18446744073709551615&wait=0'],
    [{ waitMs: Number.POSITIVE_INFINITY }, 'session', ''],
    [{ count: 5, waitMs: Number.POSITIVE_INFINITY }, 'session', '?count=5&wait=4294967295'],
    [{ timestamp: new Date(5), waitMs: 1_001 }, 'session', '?timestamp=5&clamp=true&wait=2'],
    [
      { tailOffset: 3, until: 2 ** 60, waitMs: 90_000 },
      'unary',
      '?tail_offset=3&until=18446744073709551615&wait=60',
    ],
  ] as const)('%j of a %s is %s', (query, kind, expected) => {
    expect(queryText(readQueryParts(query, kind))).toBe(expected)
  })
})

describe('an error body', () => {
  it('is decoded with the names of the API', () => {
    expect(decodeError('{"code":"invalid","message":"`tail_offset` is wrong"}')).toMatchObject({
      code: 'invalid',
      message: '`tailOffset` is wrong',
      field: 'tailOffset',
    })
    expect(decodeError('{"seq_num_mismatch":7}')).toMatchObject({ code: 'seq_num_mismatch', seqNum: 7 })
    expect(decodeError('{"fencing_token_mismatch":""}')).toMatchObject({ fencingToken: '' })
    expect(decodeError('{"code":"later","message":"?"}')).toMatchObject({
      code: undefined,
      sentCode: 'later',
    })
    for (const text of ['', 'null', '[]', '{}', '{"seq_num_mismatch":-1}'])
      expect(decodeError(text)).toBeUndefined()
  })
})

describe('events', () => {
  it('are parsed however they are cut', () => {
    const text = 'event: a\ndata: 1\ndata: 2\n\r\n:comment\r\ndata:3\r\r'
    const whole = new EventParser().push(text)
    const parser = new EventParser()
    expect([...text].flatMap((character) => parser.push(character))).toEqual(whole)
    expect(whole).toEqual([
      { event: 'a', data: '1\n2' },
      { event: 'message', data: '3' },
    ])
  })

  it('are bounded', () => {
    const parser = new EventParser()
    const chunk = 'x'.repeat(1024 * 1024)
    expect(() => {
      for (let i = 0; i < 17; i++) parser.push(chunk)
    }).toThrow(Malformed)
  })
})
