import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { concatBytes } from '../../src/model/bytes.ts'
import type { Header, SequencedRecord } from '../../src/model/record.ts'
import { decodeRecords, encodeRecords } from '../../src/storage/block-codec.ts'

const bytes = (maxLength: number) => fc.uint8Array({ maxLength })
const header = fc.tuple(bytes(200), bytes(300)) as fc.Arbitrary<Header>
/** Small ones, large ones, and those where the encoding grows by a byte. */
const integer = fc.oneof(
  fc.maxSafeNat(),
  fc.nat(1000),
  fc
    .tuple(fc.integer({ min: 0, max: 53 }), fc.integer({ min: -1, max: 1 }))
    .map(([power, offset]) => Math.min(Math.max(2 ** power + offset, 0), Number.MAX_SAFE_INTEGER)),
)
const record: fc.Arbitrary<SequencedRecord> = fc.record({
  seqNum: integer,
  timestamp: integer,
  headers: fc.array(header, { maxLength: 5 }),
  body: bytes(500),
})
const block = fc.array(record, { maxLength: 20 })

describe('records as a block', () => {
  test('decode from the middle of a larger buffer', () => {
    fc.assert(
      fc.property(block, bytes(20), (records, padding) => {
        const data = encodeRecords(records)
        const whole = concatBytes([padding, data, padding])
        const part = whole.subarray(padding.length, padding.length + data.length)
        expect(decodeRecords(part)).toEqual(records)
      }),
    )
  })

  test('form the block of all records if concatenated', () => {
    fc.assert(
      fc.property(block, block, (first, second) => {
        const joined = concatBytes([encodeRecords(first), encodeRecords(second)])
        expect(joined).toEqual(encodeRecords([...first, ...second]))
        expect(decodeRecords(joined)).toEqual([...first, ...second])
      }),
    )
  })

  test('keep bodies at the lengths where the encoding of the length grows', () => {
    for (const length of [0, 1, 127, 128, 16_383, 16_384, 1_048_568, 2_097_152]) {
      const body = new Uint8Array(length).fill(7)
      const [decoded] = decodeRecords(encodeRecords([{ seqNum: 1, timestamp: 2, headers: [], body }]))
      expect(decoded!.body.length).toBe(length)
      expect(decoded!.body.every((byte) => byte === 7)).toBe(true)
    }
  })
})

describe('malformed blocks', () => {
  test.each([
    ['a field that is not known', [0x12, 0]],
    ['a record without its length', [0x0a]],
    ['a record that is shorter than it says', [0x0a, 5, 0x08, 1]],
    ['a field of a record that is not known', [0x0a, 2, 0x28, 1]],
    ['a field of a header that is not known', [0x0a, 4, 0x1a, 2, 0x18, 1]],
    ['a body that is longer than its record', [0x0a, 3, 0x22, 2, 1, 2]],
    ['a header that is longer than its record', [0x0a, 2, 0x1a, 2, 0x0a, 0]],
    ['a name that is longer than its header', [0x0a, 4, 0x1a, 2, 0x0a, 1, 0x61]],
    ['a length of 2^53 - 1', [0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f]],
    ['a number of 2^53', [0x0a, 9, 0x08, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x10]],
    ['a number without end', [0x0a, 12, 0x08, ...new Array<number>(11).fill(0x80)]],
  ])('are rejected: %s', (_, data) => {
    expect(() => decodeRecords(Uint8Array.from(data))).toThrow(RangeError)
  })
})
