import { describe, expect, it } from 'vitest'
import {
  isClaimOld,
  isSampled,
  type Sampled,
  sampledHour,
  samplingState,
} from '../../../src/core/usage/sampled.ts'

const HOUR = 500_000
/** Half past. */
const NOW = HOUR * 3_600 + 1_800

const claimed = (at: number, by = 'other', hour = HOUR): Sampled => ({
  hour: HOUR - 1,
  claim: { hour, by, at },
})

describe('the hour in which all basins are looked at', () => {
  it.each<[string, Sampled, ReturnType<typeof samplingState>]>([
    ['never before', { hour: -1 }, 'due'],
    ['last in the hour before', { hour: HOUR - 1 }, 'due'],
    ['in this hour', { hour: HOUR }, 'done'],
    ['by an engine whose clock is a little fast', { hour: HOUR + 1 }, 'done'],
    ['by an engine whose clock was wrong', { hour: HOUR + 2 }, 'due'],
    ['by one that was wrong by years', { hour: HOUR + 50_000 }, 'due'],
    ['by nobody yet, but another is at it', claimed(NOW - 119), 'claimed'],
    ['another was at it, which is not heard of any more', claimed(NOW - 120), 'due'],
    ['another is at it, whose clock is fast', claimed(NOW + 119), 'claimed'],
    ['another said so with a wrong clock', claimed(NOW + 120), 'due'],
    ['another was at the hour before', claimed(NOW - 60, 'other', HOUR - 1), 'due'],
    ['this engine is at it', claimed(NOW - 60, 'me'), 'due'],
    ['done, though it was claimed', { ...claimed(NOW), hour: HOUR }, 'done'],
  ])('%s', (_, sampled, state) => {
    expect(samplingState(sampled, 'me', NOW)).toBe(state)
  })

  it('is that before for as long as it has only just ended', () => {
    expect([0, 299, 300, 3_599].map((seconds) => sampledHour(HOUR * 3_600 + seconds))).toEqual([
      HOUR - 1,
      HOUR - 1,
      HOUR,
      HOUR,
    ])
  })

  it('is seen to unless what is known is of earlier, or of a wrong clock', () => {
    expect([-1, 0, 1, 2].map((ahead) => isSampled(HOUR + ahead, HOUR))).toEqual([false, true, true, false])
  })

  it('is claimed again before others take it over', () => {
    expect([0, 59, 60, -60].map((age) => isClaimOld(NOW - age, NOW))).toEqual([false, false, true, true])
  })
})
