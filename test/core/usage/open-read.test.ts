import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { dueOperations, type OpenReadTimes, startOpenRead } from '../../../src/core/usage/open-read.ts'

const MINUTE = 60_000
const OPENED = 600_000 + 30_000
const AFTER_FIRST: OpenReadTimes = { dueAt: OPENED + MINUTE, checkedAt: OPENED }

/** The number of operations of a read that is checked after each of these gaps. */
function countAfter(gapsMs: readonly number[]): number {
  let times = startOpenRead(OPENED)
  let now = OPENED
  let count = 0
  for (const gapMs of [0, ...gapsMs]) {
    now += gapMs
    const { minutes, next } = dueOperations(times, now)
    count += minutes.length
    times = next
  }
  return count
}

describe('operations of a streaming read', () => {
  it.each<[string, OpenReadTimes, number, number[]]>([
    ['one when it opens', startOpenRead(OPENED), 0, [600]],
    ['no more within the first minute', AFTER_FIRST, 59_999, []],
    ['one more after a full minute, counted in that minute', AFTER_FIRST, 60_000, [660]],
    ['each counted in its own minute, even if reported late', AFTER_FIRST, 185_000, [660, 720, 780]],
    [
      'only those not reported yet',
      { dueAt: OPENED + 3 * MINUTE, checkedAt: OPENED + 130_000 },
      185_000,
      [780],
    ],
    ['none when the clock goes backwards', AFTER_FIRST, -5_000, []],
  ])('%s', (_, times, afterMs, minutes) => {
    expect(dueOperations(times, OPENED + afterMs).minutes).toEqual(minutes)
  })

  it.each<[string, number[], number]>([
    ['up to ten minutes late, nothing is lost', [10 * MINUTE], 11],
    ['a machine that slept for a night has no operations', [3_600_000 * 8], 1],
    ['a clock that was 55 years slow adds none', [55 * 365 * 86_400_000], 1],
    ['and counting continues', [55 * 365 * 86_400_000, MINUTE, 2 * MINUTE], 4],
    ['after a fast clock is set back, counting continues', [-86_400_000, MINUTE, 2 * MINUTE], 4],
    ['the rest of the minute must pass first', [30_000, 86_400_000, 29_999], 1],
    ['and then one more is due', [30_000, 86_400_000, 30_000], 2],
  ])('%s', (_, gapsMs, count) => {
    expect(countAfter(gapsMs)).toBe(count)
  })

  it('do not depend on how often they are reported', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(10 * MINUTE), { maxLength: 50 }), (gapsMs) => {
        const open = gapsMs.reduce((sum, gapMs) => sum + gapMs, 0)
        expect(countAfter(gapsMs)).toBe(1 + Math.floor(open / MINUTE))
      }),
    )
  })

  it('remain few at a time, however the clock moves', () => {
    const gaps = fc.array(fc.integer({ min: -2e12, max: 2e12 }), { maxLength: 20 })
    fc.assert(
      fc.property(gaps, (gapsMs) => {
        expect(countAfter(gapsMs)).toBeLessThanOrEqual(1 + 11 * gapsMs.length)
      }),
    )
  })
})
