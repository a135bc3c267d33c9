import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  HOURS,
  MINUTES,
  mergeSeries,
  pointsOf,
  rollUpSeries,
  type SeriesOfChunk,
  STORED_BYTES,
} from '../../../src/core/usage/tiers.ts'

const READS = 'read-ops:unary'

const buckets = fc.dictionary(fc.nat(59).map(String), fc.integer({ min: 1, max: 100 }))
const series: fc.Arbitrary<SeriesOfChunk> = fc.record({ [READS]: buckets, [STORED_BYTES]: buckets })

function sum(of: SeriesOfChunk): number {
  return Object.values(of[READS] ?? {}).reduce((total, value) => total + value, 0)
}

describe('usage of a chunk of time', () => {
  it('adds up, except that the newer of two measurements counts', () => {
    const older = { [READS]: { 1: 10, 2: 20 }, [STORED_BYTES]: { 1: 10, 2: 20 } }
    const newer = { [READS]: { 2: 1, 3: 2 }, [STORED_BYTES]: { 2: 1, 3: 2 }, 'read-ops:streaming': { 0: 1 } }
    expect(mergeSeries(older, newer)).toEqual({
      [READS]: { 1: 10, 2: 21, 3: 2 },
      [STORED_BYTES]: { 1: 10, 2: 1, 3: 2 },
      'read-ops:streaming': { 0: 1 },
    })
    expect(older).toEqual({ [READS]: { 1: 10, 2: 20 }, [STORED_BYTES]: { 1: 10, 2: 20 } })
  })

  it('is rolled up into the bucket of the coarser chunk', () => {
    // The 27th hour is the third of the second day.
    const rolledUp = rollUpSeries(
      { [READS]: { 0: 1, 10: 2, 59: 4 }, [STORED_BYTES]: { 10: 7, 2: 900 } },
      { tier: MINUTES, chunk: 27 },
      { tier: HOURS, chunk: 1 },
    )
    expect(rolledUp).toEqual({ [READS]: { 3: 7 }, [STORED_BYTES]: { 3: 7 } })
  })

  it('loses nothing when merged and rolled up', () => {
    fc.assert(
      fc.property(series, series, fc.nat(1000), (older, newer, chunk) => {
        const merged = mergeSeries(older, newer)
        expect(sum(merged)).toBe(sum(older) + sum(newer))
        const rolledUp = rollUpSeries(
          merged,
          { tier: MINUTES, chunk },
          { tier: HOURS, chunk: Math.floor(chunk / 24) },
        )
        expect(sum(rolledUp)).toBe(sum(merged))
        const last = pointsOf(merged, STORED_BYTES, { tier: MINUTES, chunk }).at(-1)?.[1]
        expect(Object.values(rolledUp[STORED_BYTES]!)).toEqual(last === undefined ? [] : [last])
      }),
    )
  })

  it('is returned with ascending times', () => {
    const at = { tier: MINUTES, chunk: 2 }
    expect(pointsOf({ [READS]: { 10: 1, 9: 2 } }, READS, at)).toEqual([
      [7_200 + 540, 2],
      [7_200 + 600, 1],
    ])
    expect(pointsOf({}, READS, at)).toEqual([])
  })
})
