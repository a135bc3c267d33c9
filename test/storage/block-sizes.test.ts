import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { block, recordsOfBlocks } from '../../adapters/conformance/blocks.ts'
import { concatBytes, utf8 } from '../../src/model/bytes.ts'
import { splitBlock } from '../../src/storage/block-sizes.ts'
import type { StoredBlock } from '../../src/storage/contract.ts'
import { encodeSegment } from '../../src/storage/sealed-block.ts'

const LARGE = block({ firstSeqNum: 70, count: 1_000, bodyBytes: 256, expiresAt: 5_000, timestamp: 9 })

describe('a block that is split', () => {
  it('is split between records, into as few pieces as possible', () => {
    const pieces = splitBlock(LARGE, 60 * 1024)
    expect(pieces.map(({ data }) => data.length > 59 * 1024)).toEqual([true, true, true, true, false])
    expect(recordsOfBlocks(pieces)).toEqual(recordsOfBlocks([LARGE]))
    expect(pieces.every(({ expiresAt }) => expiresAt === 5_000)).toBe(true)
  })

  it('shares the memory of its data', () => {
    for (const { data } of splitBlock(LARGE, 100_000)) expect(data.buffer).toBe(LARGE.data.buffer)
  })

  it('contains the same records, in pieces within the limit or of one record', () => {
    const spec = fc.record({
      firstSeqNum: fc.nat(2 ** 40),
      count: fc.integer({ min: 1, max: 40 }),
      bodyBytes: fc.nat(200),
      headers: fc.nat(3),
      timestamp: fc.option(fc.nat(2 ** 40), { nil: undefined }),
      expiresAt: fc.option(fc.nat(), { nil: null }),
    })
    fc.assert(
      fc.property(spec, fc.integer({ min: 1, max: 2_000 }), (of, bytesMax) => {
        const whole = block(of)
        const pieces = splitBlock(whole, bytesMax)
        expect(concatBytes(pieces.map(({ data }) => data))).toEqual(whole.data)
        // That also holds each to what it says of its records, and all of them to their order.
        expect(recordsOfBlocks(pieces)).toEqual(recordsOfBlocks([whole]))
        expect(pieces.reduce((sum, { meteredBytes }) => sum + meteredBytes, 0)).toBe(whole.meteredBytes)
        for (const [index, { data, firstSeqNum, endSeqNum, expiresAt }] of pieces.entries()) {
          expect(data.length <= bytesMax || endSeqNum - firstSeqNum === 1).toBe(true)
          expect(expiresAt).toBe(whole.expiresAt)
          // The first record of the next one would not have fitted.
          const next = pieces[index + 1]
          const [first] = next === undefined ? [] : splitBlock(next, 1)
          if (first !== undefined) expect(data.length + first.data.length).toBeGreaterThan(bytesMax)
        }
      }),
    )
  })
})

describe('a block is not split', () => {
  const sealed = encodeSegment({
    cipher: 'aes-256-gcm',
    meteredBytes: 100,
    skeleton: LARGE.data,
    sealed: { nonce: new Uint8Array(12), ciphertext: new Uint8Array(100_000) },
  })

  it.each<[string, Partial<StoredBlock>]>([
    ['is sealed', { data: sealed }],
    ['is no block', { data: utf8('x'.repeat(100_000)) }],
    ['is cut short', { data: LARGE.data.slice(0, -1) }],
    ['has more records than it says', { endSeqNum: 1_069 }],
    ['has fewer records than it says', { endSeqNum: 1_071 }],
    ['has others than it says', { firstSeqNum: 71, endSeqNum: 1_071 }],
    ['is metered in another way', { meteredBytes: LARGE.meteredBytes + 1 }],
    ['begins at another time', { firstTimestamp: 8 }],
    ['ends at another time', { lastTimestamp: 10 }],
  ])('that %s', (_, change) => {
    const changed = { ...LARGE, ...change }
    expect(splitBlock(changed, 60 * 1024)).toEqual([changed])
  })

  it('that is no larger than a piece, and is not decoded', () => {
    const opaque = { ...LARGE, data: utf8('opaque') }
    expect(splitBlock(opaque, 6)).toEqual([opaque])
  })
})
