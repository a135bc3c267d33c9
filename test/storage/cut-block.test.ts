import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { block, recordsOfBlocks } from '../../adapters/conformance/blocks.ts'
import { EMPTY_BYTES, utf8 } from '../../src/model/bytes.ts'
import { meteredBytesOf } from '../../src/model/record.ts'
import { decodeRecords } from '../../src/storage/block-codec.ts'
import type { ReadRange, StoredBlock } from '../../src/storage/contract.ts'
import { cutRecords } from '../../src/storage/cut-block.ts'
import { encodeSegment } from '../../src/storage/sealed-block.ts'

const LARGE = block({ firstSeqNum: 70, count: 1_000, bodyBytes: 256, expiresAt: 5_000, timestamp: 9 })
const ALL: ReadRange = { from: { seqNum: 0 }, endSeqNum: 2_000, bytesMax: 1e9 }

const anyBlock = fc
  .record({
    firstSeqNum: fc.nat(2 ** 40),
    count: fc.integer({ min: 1, max: 40 }),
    bodyBytes: fc.nat(200),
    headers: fc.nat(3),
    timestamp: fc.option(fc.nat(2 ** 40), { nil: undefined }),
    expiresAt: fc.option(fc.nat(), { nil: null }),
  })
  .map((of) => block(of))

describe('a part of a block', () => {
  const from = fc.oneof(
    fc.nat(45).map((seqNum) => ({ seqNum })),
    fc.nat(45).map((timestamp) => ({ timestamp })),
  )
  const limits = fc.record({
    from,
    length: fc.nat(45),
    bytesMax: fc.integer({ min: 1, max: 3_000 }),
    recordsMax: fc.option(fc.integer({ min: 1, max: 45 }), { nil: undefined }),
  })

  it('has the records from the start up to the one that reaches a limit', () => {
    fc.assert(
      fc.property(anyBlock, limits, (whole, limits) => {
        const { firstSeqNum, firstTimestamp } = whole
        const range: ReadRange = {
          from:
            'seqNum' in limits.from
              ? { seqNum: firstSeqNum + limits.from.seqNum }
              : { timestamp: firstTimestamp + limits.from.timestamp },
          endSeqNum: firstSeqNum + limits.length,
          bytesMax: limits.bytesMax,
          ...(limits.recordsMax !== undefined && { recordsMax: limits.recordsMax }),
        }
        const found = cutRecords(whole.data, firstSeqNum, whole.expiresAt, range)
        const records = found === undefined ? [] : recordsOfBlocks([found])
        expect(records.map(({ seqNum }) => seqNum)).toEqual(expectedSeqNums(whole, range))
        if (found !== undefined) expect(found.expiresAt).toBe(whole.expiresAt)
      }),
    )
  })

  const sealed = encodeSegment({
    cipher: 'aes-256-gcm',
    meteredBytes: 100,
    skeleton: LARGE.data,
    sealed: { nonce: new Uint8Array(12), ciphertext: new Uint8Array(100_000) },
  })

  it.each<[string, Uint8Array, number]>([
    ['is empty', EMPTY_BYTES, 70],
    ['is encrypted', sealed, 70],
    ['contains no records', utf8('x'.repeat(100_000)), 70],
    ['is truncated', LARGE.data.slice(0, -1), 70],
    ['has other records than its metadata', LARGE.data, 71],
  ])('is not made of a block that %s', (_, data, firstSeqNum) => {
    expect(cutRecords(data, firstSeqNum, null, ALL)).toBeUndefined()
  })
})

/** The same by decoding every record. */
function expectedSeqNums(whole: StoredBlock, { from, endSeqNum, bytesMax, recordsMax }: ReadRange): number[] {
  const found: number[] = []
  let bytes = 0
  for (const { seqNum, timestamp, headers, body } of decodeRecords(whole.data)) {
    const isReached =
      found.length > 0 || ('seqNum' in from ? seqNum >= from.seqNum : timestamp >= from.timestamp)
    if (!isReached || seqNum >= endSeqNum || bytes >= bytesMax || found.length >= (recordsMax ?? Infinity))
      continue
    found.push(seqNum)
    bytes += meteredBytesOf(headers, body)
  }
  return found
}
