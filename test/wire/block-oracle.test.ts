import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { concatBytes } from '../../src/model/bytes.ts'
import type { SequencedRecord } from '../../src/model/record.ts'
import { decodeRecords, encodeRecords } from '../../src/storage/block-codec.ts'
import { ReadBatchSchema } from '../../src/wire/gen/records_pb.ts'

const edges = [
  0,
  1,
  127,
  128,
  16_383,
  16_384,
  2_097_151,
  2_097_152,
  2 ** 28 - 1,
  2 ** 28,
  2 ** 31,
  2 ** 32 - 1,
  2 ** 32,
  2 ** 35,
  2 ** 42,
  2 ** 49,
  2 ** 53 - 1,
]
const number = fc.oneof(fc.maxSafeNat(), fc.constantFrom(...edges))
const bytes = fc.oneof(
  fc.uint8Array({ maxLength: 20 }),
  fc.constantFrom(0, 127, 128, 16_383, 16_384).map((length) => new Uint8Array(length).fill(length)),
)
const record: fc.Arbitrary<SequencedRecord> = fc.record({
  seqNum: number,
  timestamp: number,
  headers: fc.array(fc.tuple(bytes, bytes), { maxLength: 4 }),
  body: bytes,
})
const records = fc.array(record, { maxLength: 6 })

function generatedEncode(records: readonly SequencedRecord[]): Uint8Array {
  return toBinary(
    ReadBatchSchema,
    create(ReadBatchSchema, {
      records: records.map(({ seqNum, timestamp, headers, body }) => ({
        seqNum: BigInt(seqNum),
        timestamp: BigInt(timestamp),
        headers: headers.map(([name, value]) => ({ name, value })),
        body,
      })),
    }),
  )
}

function generatedDecode(data: Uint8Array): SequencedRecord[] {
  return fromBinary(ReadBatchSchema, data).records.map(({ seqNum, timestamp, headers, body }) => ({
    seqNum: Number(seqNum),
    timestamp: Number(timestamp),
    headers: headers.map(({ name, value }) => [name, value] as const),
    body,
  }))
}

/** Comparing strings is much faster than comparing arrays byte by byte. */
const text = (data: Uint8Array) => Buffer.from(data).toString('base64')
const texts = (records: readonly SequencedRecord[]) =>
  records.map(({ seqNum, timestamp, headers, body }) => ({
    seqNum,
    timestamp,
    headers: headers.map(([name, value]) => [text(name), text(value)]),
    body: text(body),
  }))

describe('blocks compared with the generated code', () => {
  it('have the same bytes', () => {
    fc.assert(
      fc.property(records, (input) => {
        expect(text(encodeRecords(input))).toBe(text(generatedEncode(input)))
      }),
    )
  })

  it('decode to the same records', () => {
    fc.assert(
      fc.property(records, (input) => {
        const data = generatedEncode(input)
        expect(texts(decodeRecords(data))).toEqual(texts(generatedDecode(data)))
        expect(texts(decodeRecords(data))).toEqual(texts(input))
      }),
    )
  })

  it.each(edges)('agree on the number %i', (edge) => {
    const input = [{ seqNum: edge, timestamp: edge, headers: [], body: new Uint8Array(0) }]
    expect(encodeRecords(input)).toEqual(generatedEncode(input))
    expect(decodeRecords(generatedEncode(input))).toEqual(input)
  })

  it('can be concatenated', () => {
    fc.assert(
      fc.property(records, records, (first, second) => {
        const both = concatBytes([encodeRecords(first), encodeRecords(second)])
        expect(text(both)).toBe(text(generatedEncode([...first, ...second])))
      }),
    )
  })

  it('are rejected if damaged, or decode as the generated code decodes them', () => {
    fc.assert(
      fc.property(records, fc.nat(), fc.integer({ min: 1, max: 255 }), (input, offset, change) => {
        const data = encodeRecords(input)
        if (data.length > 0) data[offset % data.length]! ^= change
        let decoded: SequencedRecord[] | undefined
        try {
          decoded = decodeRecords(data)
        } catch (error) {
          expect(error).toBeInstanceOf(RangeError)
        }
        if (decoded !== undefined) expect(texts(decoded)).toEqual(texts(generatedDecode(data)))
      }),
    )
  })
})
