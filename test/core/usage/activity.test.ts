import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  type Activity,
  addActivity,
  coarsenActivity,
  type HourRange,
  wasActive,
} from '../../../src/core/usage/sampling.ts'

const HOUR = 3_600
const DAY = 86_400

const runs = fc.array(
  fc.tuple(fc.nat(500), fc.nat(20)).map(([first, more]): HourRange => [first, first + more]),
)

function activityOf(all: readonly HourRange[]): Activity {
  return all.reduce<Activity>(addActivity, [])
}

describe('the hours in which a basin had a stream', () => {
  it('are those of all ranges, merged', () => {
    fc.assert(
      fc.property(runs, (all) => {
        const activity = activityOf(all)
        for (let hour = 0; hour < 530; hour++) {
          const expected = all.some(([first, last]) => first <= hour && hour <= last)
          expect(wasActive(activity, hour * HOUR, hour * HOUR + 1)).toBe(expected)
        }
        for (let i = 1; i < activity.length; i++)
          expect(activity[i]![0]).toBeGreaterThan(activity[i - 1]![1] + 1)
      }),
    )
  })

  it.each<[number, number, boolean]>([
    [0, 10 * HOUR, false],
    [0, 10 * HOUR + 1, true],
    [12 * HOUR, 13 * HOUR, true],
    [13 * HOUR, 20 * HOUR, false],
    [0, 20 * HOUR, true],
  ])('from 10 to 12 o’clock: in [%d, %d) %s', (from, to, active) => {
    expect(wasActive([[10, 12]], from, to)).toBe(active)
  })

  it('are kept by day after 40 days and removed after 400', () => {
    const now = 1_000 * DAY
    const hour = (daysAgo: number, of: number) => (1_000 - daysAgo) * 24 + of
    const activity: Activity = [
      [hour(600, 1), hour(600, 2)],
      [hour(450, 1), hour(60, 1)],
      [hour(50, 3), hour(50, 4)],
      [hour(50, 20), hour(50, 21)],
      [hour(10, 3), hour(10, 4)],
    ]
    expect(coarsenActivity(activity, now)).toEqual([
      [hour(400, 0), hour(60, 23)],
      [hour(50, 0), hour(50, 23)],
      [hour(10, 3), hour(10, 4)],
    ])
  })

  it('remain few ranges after any sequence of recordings', () => {
    const now = 1_000 * DAY
    const everySecondHour = Array.from({ length: 12_000 }, (_, index): HourRange => [2 * index, 2 * index])
    // 41 days by hour, the others in one range.
    expect(coarsenActivity(everySecondHour, now).length).toBeLessThanOrEqual(41 * 12 + 1)
  })
})
