import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { heartbeatGapMs } from '../../src/core/read-plan.ts'

/** The largest number below 1 that a random source yields. */
const LARGEST_BELOW_ONE = 1 - 2 ** -53

describe('the gap between heartbeats', () => {
  it.each([
    [0, 5000],
    [0.5, 10_000],
    [0.25, 7500],
  ])('at %d is %d ms', (random, gapMs) => {
    expect(heartbeatGapMs(random)).toBe(gapMs)
  })

  it('is at least 5 s and below 15 s', () => {
    expect(heartbeatGapMs(LARGEST_BELOW_ONE)).toBeLessThan(15_000)
    fc.assert(
      fc.property(fc.double({ min: 0, max: LARGEST_BELOW_ONE, noNaN: true }), (random) => {
        const gapMs = heartbeatGapMs(random)
        return gapMs >= 5000 && gapMs < 15_000
      }),
    )
  })
})
