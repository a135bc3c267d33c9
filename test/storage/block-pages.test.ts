import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { block, recordsOfBlocks } from '../../adapters/conformance/blocks.ts'
import { utf8 } from '../../src/model/bytes.ts'
import { meteredBytesOf } from '../../src/model/record.ts'
import { decodeRecords } from '../../src/storage/block-codec.ts'
import { cutRecords, pagesOf, wantedPages } from '../../src/storage/block-pages.ts'
import type { ReadRange, StoredBlock } from '../../src/storage/contract.ts'
import { encodeSegment } from '../../src/storage/sealed-block.ts'

const LARGE = block({ firstSeqNum: 70, count: 1_000, bodyBytes: 256, expiresAt: 5_000, timestamp: 9 })

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

/** Reads a part of a block by its pages. */
function partOf(whole: StoredBlock, pageBytes: number, range: ReadRange): StoredBlock | undefined {
  const pages = wantedPages(pagesOf(whole, pageBytes), range)
  const [first, last] = [pages[0], pages.at(-1)]
  if (first === undefined || last === undefined) return undefined
  const data = whole.data.subarray(first.offset, last.offset + last.bytes)
  return cutRecords(data, first.firstSeqNum, whole.expiresAt, range)
}

describe('the pages of a block', () => {
  it('are contiguous, each with whole records and at least its minimum size', () => {
    fc.assert(
      fc.property(anyBlock, fc.integer({ min: 1, max: 2_000 }), (whole, pageBytes) => {
        let offset = 0
        let { firstSeqNum } = whole
        const pages = pagesOf(whole, pageBytes)
        for (const page of pages) {
          const records = decodeRecords(whole.data.subarray(page.offset, page.offset + page.bytes))
          expect(page).toMatchObject({ offset, firstSeqNum, endSeqNum: firstSeqNum + records.length })
          expect(page.lastTimestamp).toBe(records.at(-1)!.timestamp)
          if (page !== pages.at(-1)) expect(page.bytes).toBeGreaterThanOrEqual(pageBytes)
          offset += page.bytes
          firstSeqNum = page.endSeqNum
        }
        expect([offset, firstSeqNum]).toEqual([whole.data.length, whole.endSeqNum])
      }),
    )
  })

  const sealed = encodeSegment({
    cipher: 'aes-256-gcm',
    meteredBytes: 100,
    skeleton: LARGE.data,
    sealed: { nonce: new Uint8Array(12), ciphertext: new Uint8Array(100_000) },
  })

  it.each<[string, Partial<StoredBlock>]>([
    ['is encrypted', { data: sealed }],
    ['contains no records', { data: utf8('x'.repeat(100_000)) }],
    ['is truncated', { data: LARGE.data.slice(0, -1) }],
    ['has more records than its metadata', { endSeqNum: 1_069 }],
    ['has fewer records than its metadata', { endSeqNum: 1_071 }],
    ['has other records than its metadata', { firstSeqNum: 71, endSeqNum: 1_071 }],
  ])('are a single one if the block %s', (_, change) => {
    const changed = { ...LARGE, ...change }
    const { firstSeqNum, endSeqNum, lastTimestamp, data } = changed
    const page = { offset: 0, bytes: data.length, firstSeqNum, endSeqNum, lastTimestamp }
    expect(pagesOf(changed, 4_096)).toEqual([page])
  })
})

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
      fc.property(anyBlock, fc.integer({ min: 1, max: 2_000 }), limits, (whole, pageBytes, limits) => {
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
        const found = partOf(whole, pageBytes, range)
        const records = found === undefined ? [] : recordsOfBlocks([found])
        expect(records.map(({ seqNum }) => seqNum)).toEqual(expectedSeqNums(whole, range))
        if (found !== undefined) expect(found.expiresAt).toBe(whole.expiresAt)
      }),
    )
  })
})

/** The same without pages. */
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
