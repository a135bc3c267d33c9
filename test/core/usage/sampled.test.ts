import { describe, expect, it } from 'vitest'
import {
  isSampled,
  mustRenewClaim,
  type Sampled,
  sampledHour,
  samplingState,
} from '../../../src/core/usage/sampling.ts'

const HOUR = 500_000
/** Half past the hour. */
const NOW = HOUR * 3_600 + 1_800

const claimed = (at: number, by = 'other', hour = HOUR): Sampled => ({
  hour: HOUR - 1,
  claim: { hour, by, at },
})

describe('the state of an hour', () => {
  it.each<[string, Sampled, ReturnType<typeof samplingState>]>([
    ['never sampled', { hour: -1 }, 'due'],
    ['sampled in the previous hour', { hour: HOUR - 1 }, 'due'],
    ['sampled in this hour', { hour: HOUR }, 'done'],
    ['sampled by an engine whose clock is slightly fast', { hour: HOUR + 1 }, 'done'],
    ['sampled by an engine whose clock was wrong', { hour: HOUR + 2 }, 'due'],
    ['sampled by an engine whose clock was wrong by years', { hour: HOUR + 50_000 }, 'due'],
    ['claimed by another engine', claimed(NOW - 119), 'claimed'],
    ['claimed by an engine that stopped renewing', claimed(NOW - 120), 'due'],
    ['claimed by an engine with a fast clock', claimed(NOW + 119), 'claimed'],
    ['claimed by an engine with a wrong clock', claimed(NOW + 120), 'due'],
    ['claimed for the previous hour', claimed(NOW - 60, 'other', HOUR - 1), 'due'],
    ['claimed by this engine', claimed(NOW - 60, 'me'), 'due'],
    ['sampled, although claimed', { ...claimed(NOW), hour: HOUR }, 'done'],
  ])('%s', (_, sampled, state) => {
    expect(samplingState(sampled, 'me', NOW)).toBe(state)
  })

  it('counts for the previous hour just after it ended', () => {
    expect([0, 299, 300, 3_599].map((seconds) => sampledHour(HOUR * 3_600 + seconds))).toEqual([
      HOUR - 1,
      HOUR - 1,
      HOUR,
      HOUR,
    ])
  })

  it('is sampled unless the last sample is earlier or from a wrong clock', () => {
    expect([-1, 0, 1, 2].map((ahead) => isSampled(HOUR + ahead, HOUR))).toEqual([false, true, true, false])
  })

  it('must be renewed before other engines can claim it', () => {
    expect([0, 59, 60, -60].map((age) => mustRenewClaim(NOW - age, NOW))).toEqual([false, false, true, true])
  })
})
