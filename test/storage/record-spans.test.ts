import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { meteredBytesOf, type SequencedRecord } from '../../src/model/record.ts'
import { decodeRecords, encodeRecords } from '../../src/storage/block-codec.ts'
import { recordSpans } from '../../src/storage/record-spans.ts'

const bytes = fc.uint8Array({ maxLength: 300 })
const record: fc.Arbitrary<SequencedRecord> = fc.record({
  seqNum: fc.maxSafeNat(),
  timestamp: fc.maxSafeNat(),
  headers: fc.array(fc.tuple(bytes, bytes), { maxLength: 3 }),
  body: bytes,
})
const block = fc.array(record, { maxLength: 8 })

function whatIsRefused(work: () => unknown): string {
  try {
    work()
    return 'nothing'
  } catch (error) {
    return (error as Error).constructor.name
  }
}

describe('the spans of records in a block', () => {
  it('have the sequence number, timestamp and size of each record', () => {
    fc.assert(
      fc.property(block, (records) => {
        const found = recordSpans(encodeRecords(records))
        expect(found.map(({ seqNum, timestamp, meteredBytes }) => [seqNum, timestamp, meteredBytes])).toEqual(
          records.map(({ seqNum, timestamp, headers, body }) => [
            seqNum,
            timestamp,
            meteredBytesOf(headers, body),
          ]),
        )
      }),
    )
  })

  it('extract blocks from it', () => {
    fc.assert(
      fc.property(block, fc.nat(8), fc.nat(8), (records, a, b) => {
        const data = encodeRecords(records)
        const spans = recordSpans(data).slice(a, b)
        const part = data.subarray(spans[0]?.start ?? 0, spans.at(-1)?.end ?? 0)
        expect(decodeRecords(part)).toEqual(records.slice(a, b))
      }),
    )
  })

  it('are rejected if the records are', () => {
    const damage = fc.record({ at: fc.nat(), value: fc.nat(255), length: fc.nat() })
    fc.assert(
      fc.property(block, damage, (records, { at, value, length }) => {
        const data = encodeRecords(records)
        if (data.length === 0) return
        data[at % data.length] = value
        const damaged = data.subarray(0, data.length - (length % 3))
        expect(whatIsRefused(() => recordSpans(damaged))).toBe(whatIsRefused(() => decodeRecords(damaged)))
      }),
    )
  })
})
