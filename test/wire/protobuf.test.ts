import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { appendBatch } from '../../src/model/append-input.ts'
import { utf8 } from '../../src/model/bytes.ts'
import type { StreamPosition } from '../../src/model/position.ts'
import type { SequencedRecord } from '../../src/model/record.ts'
import { ReadBatch, RecordBatch } from '../../src/storage/record-batch.ts'
import {
  FrameDecoder,
  heartbeatFrame,
  type MessageFrame,
  messageOf,
  readBatchFrame,
} from '../../src/wire/frame.ts'
import { Malformed } from '../../src/wire/json.ts'
import {
  decodeAppendAck,
  decodeAppendInput,
  decodeReadBatch,
  encodeAppendAck,
  encodeAppendInput,
  encodeHeartbeat,
  encodeReadBatch,
} from '../../src/wire/protobuf.ts'
import { rejection } from '../model/rejection.ts'
import { AppendAckSchema, AppendInputSchema, ReadBatchSchema } from './gen/records_pb.ts'
import { outcomeOf } from './outcome.ts'

const encode = (input: MessageInitShape<typeof AppendInputSchema>) =>
  toBinary(AppendInputSchema, create(AppendInputSchema, input))
const decode = (bytes: Uint8Array) => decodeAppendInput(bytes, 'bad_proto')

const bytes = fc.uint8Array({ maxLength: 200 })
const optional = (value: bigint | undefined) => (value === undefined ? undefined : Number(value))

/** The result of the generated code, in the shape of the decoder under test. */
function oracle(data: Uint8Array) {
  const { records, matchSeqNum, fencingToken } = fromBinary(AppendInputSchema, data)
  return {
    inputs: records.map(({ timestamp, headers, body }) => ({
      timestamp: optional(timestamp),
      headers: headers.length === 0 ? undefined : headers.map(({ name, value }) => [name, value]),
      body,
    })),
    conditions: { matchSeqNum: optional(matchSeqNum), fencingToken },
  }
}

describe('an append input that a server receives', () => {
  it('skips unknown fields of records and headers and uses the last of repeated ones', () => {
    const header = [(2 << 3) | 2, 1, 5, (3 << 3) | 0, 9, (1 << 3) | 2, 1, 6, (1 << 3) | 2, 1, 7]
    const record = [
      (3 << 3) | 2,
      1,
      1,
      (2 << 3) | 2,
      header.length,
      ...header,
      1 << 3,
      3,
      (5 << 3) | 5,
      0,
      0,
      0,
      0,
      1 << 3,
      4,
    ]
    const data = Uint8Array.from([(1 << 3) | 2, record.length, ...record])
    expect(decode(data)).toEqual(oracle(data))
    expect(decode(data).inputs).toEqual([
      { timestamp: 4, headers: [[Uint8Array.of(7), Uint8Array.of(5)]], body: Uint8Array.of(1) },
    ])
  })

  it('accepts an empty message, which `appendBatch` rejects', () => {
    const { inputs, conditions } = decode(new Uint8Array(0))
    expect(inputs).toEqual([])
    expect(outcomeOf(() => appendBatch(inputs, conditions))).toBe('422 invalid')
  })

  it('distinguishes a condition of 0 and an empty token from none', () => {
    expect(decode(encode({ matchSeqNum: 0n, fencingToken: '' })).conditions).toEqual({
      matchSeqNum: 0,
      fencingToken: '',
    })
    expect(decode(encode({})).conditions).toEqual({ matchSeqNum: undefined, fencingToken: undefined })
    expect(decode(encode({ records: [{ timestamp: 0n }] })).inputs).toMatchObject([{ timestamp: 0 }])
    expect(decode(encode({ records: [{}] })).inputs).toEqual([
      { timestamp: undefined, headers: undefined, body: new Uint8Array(0) },
    ])
  })

  it('returns views of its input', () => {
    const data = encode({ records: [{ body: utf8('body') }] })
    expect(decode(data).inputs).toMatchObject([{ body: { buffer: data.buffer } }])
  })

  it('accepts groups nested 100 deep in unknown fields, and rejects deeper ones', () => {
    const group = (depth: number) =>
      Uint8Array.from([...Array(depth).fill((9 << 3) | 3), ...Array(depth).fill((9 << 3) | 4)])
    expect(decode(group(100)).inputs).toEqual([])
    expect(outcomeOf(() => decode(group(101)))).toBe('400 bad_proto')
    expect(outcomeOf(() => decode(new Uint8Array(200_000).fill((9 << 3) | 3)))).toBe('400 bad_proto')
  })

  it('returns byte arrays that are not Node buffers, whose `slice` does not copy', () => {
    const [input] = decode(Buffer.from(encode({ records: [{ body: utf8('body') }] }))).inputs
    expect((input as { body: Uint8Array }).body.constructor).toBe(Uint8Array)
  })

  const record = (...content: number[]) => [(1 << 3) | 2, content.length, ...content]
  it.each([
    ['garbage', [0xff, 0xff, 0xff]],
    ['a record cut short', [(1 << 3) | 2, 5, 1]],
    ['a record whose field overruns it', [...record((3 << 3) | 2, 3), 1, 2, 3]],
    ['a header that overruns its record', [...record((2 << 3) | 2, 3), 1, 2, 3]],
    ['a header whose field overruns it', record((2 << 3) | 2, 2, (1 << 3) | 2, 1, 7)],
    ['a field 0', [0, 0]],
    ['records as a number', [1 << 3, 0]],
    ['match_seq_num as bytes', [(2 << 3) | 2, 0]],
    ['fencing_token as a number', [3 << 3, 0]],
    ['timestamp as 64 bits', record((1 << 3) | 1, 0, 0, 0, 0, 0, 0, 0, 0)],
    ['a token that is not UTF-8', [(3 << 3) | 2, 1, 0xff]],
    ['a number of eleven bytes', [2 << 3, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]],
    ['an end without a group', [(9 << 3) | 4]],
    ['a large number before what is malformed', [2 << 3, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1, 0]],
  ])('rejects %s', (_case, data) => {
    expect(outcomeOf(() => decode(Uint8Array.from(data)))).toBe('400 bad_proto')
    expect(outcomeOf(() => decodeAppendInput(Uint8Array.from(data), 'bad_frame'))).toBe('400 bad_frame')
  })

  it.each([2n ** 53n, 2n ** 64n - 1n])(
    'rejects the number %s with an error that names the limit',
    (value) => {
      const match = rejection(() => decode(encode({ records: [{}], matchSeqNum: value })))
      expect(match).toMatchObject({ code: 'invalid', status: 422, field: 'match_seq_num' })
      expect(match?.message).toContain('9007199254740991')
      const time = rejection(() => decode(encode({ records: [{ timestamp: 5n }, { timestamp: value }, {}] })))
      expect(time).toMatchObject({ code: 'invalid', status: 422, field: 'timestamp' })
      expect(time?.message).toContain('9007199254740991')
    },
  )

  it('accepts a fencing token that is too long, which `appendBatch` rejects with 422', () => {
    const { inputs, conditions } = decode(encode({ records: [{}], fencingToken: 'x'.repeat(37) }))
    expect(outcomeOf(() => appendBatch(inputs, conditions))).toBe('422 invalid')
  })

  it('keeps one record more than the limit of a batch and checks the others', { tags: ['slow'] }, () => {
    const million = new Uint8Array(2_000_000)
    for (let i = 0; i < million.length; i += 2) million[i] = (1 << 3) | 2
    const { inputs, conditions } = decode(million)
    expect(inputs).toHaveLength(1001)
    expect(rejection(() => appendBatch(inputs, conditions))?.message).toBe(
      'record batch must not exceed 1000 records',
    )
    million[million.length - 1] = 1
    expect(outcomeOf(() => decode(million))).toBe('400 bad_proto')
    const beyondLimit = encode({
      records: [...Array.from({ length: 2000 }, () => ({})), { timestamp: 2n ** 60n }],
    })
    expect(rejection(() => decode(beyondLimit))).toMatchObject({ code: 'invalid', field: 'timestamp' })
  })
})

describe('an append input that a client sends', () => {
  it('is what the generated code decodes', () => {
    const record = fc.record(
      {
        timestamp: fc.maxSafeNat(),
        headers: fc.array(fc.tuple(fc.uint8Array({ minLength: 1, maxLength: 200 }), bytes), { maxLength: 4 }),
        body: bytes,
      },
      { requiredKeys: ['body'] },
    )
    const conditions = fc.record(
      { matchSeqNum: fc.maxSafeNat(), fencingToken: fc.string({ unit: 'grapheme', maxLength: 5 }) },
      { requiredKeys: [] },
    )
    fc.assert(
      fc.property(fc.array(record, { minLength: 1, maxLength: 5 }), conditions, (inputs, given) => {
        const sent = encodeAppendInput(appendBatch(inputs), given)
        const { inputs: read, conditions: readConditions } = oracle(sent)
        expect(read).toEqual(
          inputs.map(({ timestamp, headers = [], body }) => ({
            timestamp,
            headers: headers.length === 0 ? undefined : headers,
            body,
          })),
        )
        expect(readConditions).toEqual({ matchSeqNum: undefined, fencingToken: undefined, ...given })
      }),
    )
  })
})

describe('an acknowledgement', () => {
  const position = fc.record({ seqNum: fc.maxSafeNat(), timestamp: fc.maxSafeNat() })

  it('is decoded to what was encoded', () => {
    const closed = position.map((tail) => ({ ...tail, closed: true as const }))
    const ack = fc.record({ start: position, end: position, tail: fc.oneof(position, closed) })
    fc.assert(
      fc.property(ack, (one) => {
        expect(decodeAppendAck(encodeAppendAck(one))).toEqual(one)
      }),
    )
  })

  it('has all three positions, even if every number is 0', () => {
    const zero = { seqNum: 0, timestamp: 0 }
    expect([...encodeAppendAck({ start: zero, end: zero, tail: zero })]).toEqual([0x0a, 0, 0x12, 0, 0x1a, 0])
  })

  it('is rejected with a number that JavaScript does not have', () => {
    const ack = create(AppendAckSchema, { end: { seqNum: 2n ** 53n } })
    expect(() => decodeAppendAck(toBinary(AppendAckSchema, ack))).toThrow(Malformed)
  })
})

describe('a batch that a client receives', () => {
  const encodeBatch = (batch: MessageInitShape<typeof ReadBatchSchema>) =>
    toBinary(ReadBatchSchema, create(ReadBatchSchema, batch))

  it.each([[[0x0a, 5]], [[0x0a, 2, 0x08]], [[0x0f]], [[0x12, 2, 0x08, 0x80]]])(
    'is rejected if it is malformed: %j',
    (data) => {
      expect(() => decodeReadBatch(new Uint8Array(data))).toThrow(Malformed)
    },
  )

  it('is rejected with a sequence number that JavaScript does not have', () => {
    expect(() => decodeReadBatch(encodeBatch({ records: [{ seqNum: 2n ** 53n }] }))).toThrow(Malformed)
  })
})

const RECORDS: SequencedRecord[] = [
  { seqNum: 0, timestamp: 0, headers: [], body: utf8('first') },
  { seqNum: 1, timestamp: 2 ** 53 - 1, headers: [[utf8('name'), utf8('')]], body: utf8('x'.repeat(2000)) },
]

function batchOf(records: readonly SequencedRecord[], tail?: StreamPosition): ReadBatch {
  return new ReadBatch(
    new RecordBatch(records),
    { count: records.length, meteredBytes: 0, lastSeqNum: 0 },
    tail,
  )
}

function framesOf(data: Uint8Array): MessageFrame {
  const decoder = new FrameDecoder()
  const [frame] = [...decoder.decode(data)]
  decoder.end()
  return frame as MessageFrame
}

describe('a batch that a server sends', () => {
  it('consists of the block and the tail', () => {
    const read = fromBinary(ReadBatchSchema, encodeReadBatch(batchOf(RECORDS, { seqNum: 300, timestamp: 5 })))
    expect(read.records.map(({ seqNum, timestamp }) => [seqNum, timestamp])).toEqual([
      [0n, 0n],
      [1n, 2n ** 53n - 1n],
    ])
    expect(read.records[1]!.headers[0]).toMatchObject({ name: utf8('name'), value: utf8('') })
    expect(read.records[0]!.body).toEqual(utf8('first'))
    expect(read.tail).toMatchObject({ seqNum: 300n, timestamp: 5n })
  })

  it('is the block itself without a tail', () => {
    const batch = batchOf(RECORDS)
    expect(encodeReadBatch(batch)).toBe(batch.data)
    expect(fromBinary(ReadBatchSchema, batch.data).tail).toBeUndefined()
    expect(encodeReadBatch(batchOf([]))).toHaveLength(0)
  })

  it('contains a tail of zeros', () => {
    expect([...encodeReadBatch(batchOf([], { seqNum: 0, timestamp: 0 }))]).toEqual([0x12, 0])
    expect([...encodeHeartbeat({ seqNum: 0, timestamp: 0 })]).toEqual([0x12, 0])
  })

  it('has no records if it is a heartbeat', () => {
    const read = fromBinary(ReadBatchSchema, encodeHeartbeat({ seqNum: 2 ** 53 - 1, timestamp: 7 }))
    expect(read.records).toEqual([])
    expect(read.tail).toMatchObject({ seqNum: 2n ** 53n - 1n, timestamp: 7n })
  })
})

describe('frames of a session', () => {
  it.each([undefined, 'zstd', 'gzip'] as const)('contain the batch, with %s', async (compression) => {
    const batch = batchOf(RECORDS, { seqNum: 2, timestamp: 3 })
    const frame = framesOf(await readBatchFrame(batch, compression))
    expect(frame.compression).toBe(compression)
    expect(await messageOf(frame)).toEqual(encodeReadBatch(batch))
  })

  it('are encoded once per batch and algorithm', async () => {
    const batch = batchOf(RECORDS)
    const readers = await Promise.all(Array.from({ length: 1000 }, () => readBatchFrame(batch, 'zstd')))
    expect(new Set(readers).size).toBe(1)
    expect(await readBatchFrame(batch, undefined)).not.toBe(readers[0])
    expect(await readBatchFrame(batch, undefined)).toBe(await readBatchFrame(batch, undefined))
    expect(await readBatchFrame(batchOf(RECORDS), 'zstd')).not.toBe(readers[0])
  })

  it('are encoded again after a failure', async () => {
    const batch = batchOf(RECORDS)
    let calls = 0
    Object.defineProperty(batch, 'data', {
      get: () => (++calls === 1 ? new Uint8Array(3_000_000) : RECORDS[0]!.body),
    })
    expect(() => readBatchFrame(batch, undefined)).toThrow(RangeError)
    expect(framesOf(await readBatchFrame(batch, undefined)).payload).toEqual(utf8('first'))
  })

  it('of heartbeats are never compressed', async () => {
    const frame = framesOf(await heartbeatFrame({ seqNum: 5, timestamp: 6 }))
    expect(frame).toMatchObject({ kind: 'message', compression: undefined })
    expect(frame.payload).toEqual(encodeHeartbeat({ seqNum: 5, timestamp: 6 }))
  })
})
