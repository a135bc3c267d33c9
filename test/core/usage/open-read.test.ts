import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { dueOperations, type OpenReadTimes, opened } from '../../../src/core/usage/open-read.ts'

const MINUTE = 60_000
const OPENED = 600_000 + 30_000
const AFTER_FIRST: OpenReadTimes = { dueAt: OPENED + MINUTE, seenAt: OPENED }

/** How many fall due of a read that was opened, when it is looked at after each of some gaps. */
function countAfter(gapsMs: readonly number[]): number {
  let times = opened(OPENED)
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

describe('operations of a streaming read (wire-behaviour.md 11.3)', () => {
  it.each<[string, OpenReadTimes, number, number[]]>([
    ['one when it opens', opened(OPENED), 0, [600]],
    ['no more within the first minute', AFTER_FIRST, 59_999, []],
    ['one more after a full minute, in the minute in which that is', AFTER_FIRST, 60_000, [660]],
    ['each in its minute when they are told late', AFTER_FIRST, 185_000, [660, 720, 780]],
    [
      'only those that were not told',
      { dueAt: OPENED + 3 * MINUTE, seenAt: OPENED + 130_000 },
      185_000,
      [780],
    ],
    ['none when the clock goes backwards', AFTER_FIRST, -5_000, []],
  ])('%s', (_, times, afterMs, minutes) => {
    expect(dueOperations(times, OPENED + afterMs).minutes).toEqual(minutes)
  })

  it.each<[string, number[], number]>([
    ['up to ten minutes late, nothing is lost', [10 * MINUTE], 11],
    ['a machine that slept for a night read nothing', [3_600_000 * 8], 1],
    ['a clock that was 55 years slow and is set right', [55 * 365 * 86_400_000], 1],
    ['it goes on from there', [55 * 365 * 86_400_000, MINUTE, 2 * MINUTE], 4],
    ['a clock that was fast and is set back: it goes on at once', [-86_400_000, MINUTE, 2 * MINUTE], 4],
    ['what was left of the minute when it was set is still to come', [30_000, 86_400_000, 29_999], 1],
    ['and then counts', [30_000, 86_400_000, 30_000], 2],
  ])('%s', (_, gapsMs, count) => {
    expect(countAfter(gapsMs)).toBe(count)
  })

  it('are as many however often they are told', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(10 * MINUTE), { maxLength: 50 }), (gapsMs) => {
        const open = gapsMs.reduce((sum, gapMs) => sum + gapMs, 0)
        expect(countAfter(gapsMs)).toBe(1 + Math.floor(open / MINUTE))
      }),
    )
  })

  it('are never many at once, whatever the clock does', () => {
    const gaps = fc.array(fc.integer({ min: -2e12, max: 2e12 }), { maxLength: 20 })
    fc.assert(
      fc.property(gaps, (gapsMs) => {
        expect(countAfter(gapsMs)).toBeLessThanOrEqual(1 + 11 * gapsMs.length)
      }),
    )
  })
})
