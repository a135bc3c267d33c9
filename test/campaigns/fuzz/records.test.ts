import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import fc from 'fast-check'
import { expect } from 'vitest'
import type { AppendInput } from '../../../src/model/append-input.ts'
import { utf8 } from '../../../src/model/bytes.ts'
import { BATCH_RECORDS_MAX } from '../../../src/model/limits.ts'
import type { StreamPosition } from '../../../src/model/position.ts'
import {
  type Header,
  meteredBytesOf,
  type SequencedRecord,
  sequencedRecord,
} from '../../../src/model/record.ts'
import { decodeRecords, encodeRecords } from '../../../src/storage/block-codec.ts'
import { recordSpans } from '../../../src/storage/cut-block.ts'
import { decodeAppendInput, decodeReadBatch } from '../../../src/wire/protobuf.ts'
import { AppendInputSchema, ReadBatchSchema } from '../../wire/gen/records_pb.ts'
import { varint } from './damage.ts'
import { fuzzBytes } from './decoder.ts'
import { bytes, fencingToken, integer, optional, record } from './models.ts'
import { checkBatch, malformedResponse, outcomeOf, rangeError, withCode } from './outcomes.ts'

const tagsOf = (tags: readonly number[]) => tags.map((tag) => Uint8Array.of(tag))

const anyAppend = fc.record({
  inputs: fc.array(
    fc.record({
      timestamp: optional(integer),
      headers: optional(fc.array(fc.tuple(bytes, bytes), { minLength: 1, maxLength: 3 })),
      body: bytes,
    }),
    { maxLength: 4 },
  ),
  conditions: fc.record({ matchSeqNum: optional(integer), fencingToken: optional(fencingToken) }),
})

function number(value: bigint | undefined): number | undefined {
  return value === undefined ? undefined : Number(value)
}

const membersOf = ([name, value]: Header) => ({ name, value })
const headerOf = ({ name, value }: { name: Uint8Array; value: Uint8Array }) => [name, value] as const

/** The result of the generated code. Of a batch that is far too long, the part that is kept. */
function generatedAppend(data: Uint8Array): AppendInput {
  const { records, matchSeqNum, fencingToken: token } = fromBinary(AppendInputSchema, data)
  return {
    inputs: records.slice(0, BATCH_RECORDS_MAX + 1).map(({ timestamp, headers, body }) => ({
      timestamp: number(timestamp),
      headers: headers.length > 0 ? headers.map(headerOf) : undefined,
      body,
    })),
    conditions: { matchSeqNum: number(matchSeqNum), fencingToken: token },
  }
}

/** Throws unless the generated code decodes the same. */
function checkAgreement(value: unknown, generated: () => unknown): void {
  const expected = outcomeOf(generated)
  // It rejects tags padded to more than five bytes; the service and this decoder accept them.
  const isPadded = 'error' in expected && /illegal tag/.test(String(expected.error))
  if (!isPadded) expect({ value }).toEqual(expected)
}

fuzzBytes('an append in protobuf', {
  models: anyAppend,
  encode({ inputs, conditions: { matchSeqNum, fencingToken: token } }) {
    const message = create(AppendInputSchema, {
      records: inputs.map(({ timestamp, headers = [], body }) => ({
        ...(timestamp !== undefined && { timestamp: BigInt(timestamp) }),
        headers: headers.map(membersOf),
        body,
      })),
      ...(matchSeqNum !== undefined && { matchSeqNum: BigInt(matchSeqNum) }),
      ...(token !== undefined && { fencingToken: token }),
    })
    return toBinary(AppendInputSchema, message)
  },
  decode: (input) => decodeAppendInput(input, 'bad_proto'),
  means: (append) => append,
  rejects: withCode('bad_proto', 'invalid'),
  verify(append, input) {
    checkAgreement(append, () => generatedAppend(input))
    checkBatch(append)
  },
  words: [
    ...tagsOf([0x08, 0x0a, 0x0b, 0x0c, 0x0d, 0x09, 0x10, 0x12, 0x18, 0x1a, 0x20, 0x22, 0x23, 0x24, 0x3d, 7]),
    varint(2n ** 32n - 1n),
    // An unknown group in a group, the largest field number, and ill-formed UTF-8.
    Uint8Array.of(0x2b, 0x2b, 0x2c, 0x2c),
    varint((2n ** 29n - 1n) * 8n),
    Uint8Array.of(0x1a, 2, 0xed, 0xa0),
    utf8('\0'),
  ],
})

/** Decodes records without the meaning of commands, which generated code does not know. */
function recordsOf(data: Uint8Array): SequencedRecord[] {
  return decodeRecords(data).map(({ command: _, ...of }) => of)
}

function checkNumbers(records: readonly SequencedRecord[]): void {
  const numbers = records.flatMap(({ seqNum, timestamp }) => [seqNum, timestamp])
  expect(numbers).toSatisfy(() => numbers.every(Number.isSafeInteger))
}

/** The message of the generated code. */
function generatedBatch(records: readonly SequencedRecord[], tail?: StreamPosition): Uint8Array {
  const message = create(ReadBatchSchema, {
    records: records.map(({ seqNum, timestamp, headers, body }) => ({
      seqNum: BigInt(seqNum),
      timestamp: BigInt(timestamp),
      headers: headers.map(membersOf),
      body,
    })),
    ...(tail !== undefined && {
      tail: { ...tail, seqNum: BigInt(tail.seqNum), timestamp: BigInt(tail.timestamp) },
    }),
  })
  return toBinary(ReadBatchSchema, message)
}

const position = fc.record({ seqNum: integer, timestamp: integer })

function generatedRecords(data: Uint8Array): SequencedRecord[] {
  return fromBinary(ReadBatchSchema, data).records.map(({ seqNum, timestamp, headers, body }) => ({
    seqNum: Number(seqNum),
    timestamp: Number(timestamp),
    headers: headers.map(headerOf),
    body,
  }))
}

/** The span of each record in a block, behind each other. */
function expectedSpans(records: readonly SequencedRecord[], data: Uint8Array) {
  const spans = recordSpans(data)
  expect(spans.map(({ start }) => start)).toEqual([0, ...spans.map(({ end }) => end)].slice(0, spans.length))
  expect(spans.map(({ start, end }) => recordsOf(data.subarray(start, end)))).toEqual(
    records.map((of) => [of]),
  )
  return records.map(({ seqNum, timestamp, headers, body }) => ({
    seqNum,
    timestamp,
    meteredBytes: meteredBytesOf(headers, body),
  }))
}

fuzzBytes('a block of records', {
  models: fc.array(record, { maxLength: 4 }),
  encode: encodeRecords,
  decode(input) {
    const spans = outcomeOf(() => recordSpans(input))
    const records = outcomeOf(() => recordsOf(input))
    expect('value' in spans, 'it has spans if it has records').toBe('value' in records)
    if ('error' in records) throw records.error
    return records.value
  },
  means: (records) => records,
  rejects: rangeError,
  verify(records, input) {
    checkNumbers(records)
    expect(recordsOf(encodeRecords(records)), 'the records, encoded again').toEqual(records)
    expect(encodeRecords(records)).toEqual(generatedBatch(records))
    expect(records).toEqual(generatedRecords(input))
    expect(recordSpans(input)).toMatchObject(expectedSpans(records, input))
  },
  words: tagsOf([0x0a, 0x08, 0x10, 0x1a, 0x22, 0x12]),
})

fuzzBytes('a batch in the response of a server', {
  models: fc.record({
    records: fc.array(record, { maxLength: 4 }),
    tail: optional(
      fc.oneof(
        position,
        position.map((tail) => ({ ...tail, closed: true as const })),
      ),
    ),
  }),
  encode: ({ records, tail }) => generatedBatch(records, tail),
  decode: decodeReadBatch,
  means: ({ records, tail }) => ({
    records: records.map(({ seqNum, timestamp, headers, body }) =>
      sequencedRecord(seqNum, timestamp, headers, body),
    ),
    tail,
  }),
  rejects: malformedResponse,
  verify({ records }, input) {
    checkNumbers(records)
    const plain = records.map(({ command: _, ...of }) => of)
    checkAgreement(plain, () => generatedRecords(input))
  },
  memory: { perInputByte: 256, beside: 4096 },
})
