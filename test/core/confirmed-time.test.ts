import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type ConfirmedTime, confirmTime } from '../../src/core/clocks.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const START = Date.UTC(2025, 0, 1)

/** What is confirmed after looks at the clock at these times, relative to the start, by one engine. */
function confirmedAfter(...times: number[]): ConfirmedTime {
  return confirmedBy(times, true)
}

/** What is confirmed if each look is the first of an engine. */
function confirmedByOpenings(...times: number[]): ConfirmedTime {
  return confirmedBy(times, false)
}

function confirmedBy(times: readonly number[], isOneEngine: boolean): ConfirmedTime {
  let known = confirmTime(undefined, START, undefined)
  let seenAt = START
  for (const time of times) {
    known = confirmTime(known, START + time, isOneEngine ? seenAt : undefined)
    seenAt = START + time
  }
  const { at, stepAt } = known
  return { at: at - START, stepAt: stepAt === null ? null : stepAt - START }
}

const everyMinute = (from: number, to: number) =>
  Array.from({ length: (to - from) / MINUTE + 1 }, (_, i) => from + i * MINUTE)

describe('the time that is confirmed', () => {
  it('follows a clock that runs on', () => {
    expect(confirmedAfter(MINUTE, 15 * MINUTE, 29 * MINUTE)).toEqual({ at: 29 * MINUTE, stepAt: null })
  })

  it.each([
    ['a wrong time zone', 30 * MINUTE],
    ['a wrong day', DAY],
    ['another century', 36_500 * DAY],
  ])('does not follow a step to %s, and forgets it when the clock goes back', (_, step) => {
    expect(confirmedAfter(MINUTE, MINUTE + step)).toEqual({ at: MINUTE, stepAt: MINUTE + step })
    expect(confirmedAfter(MINUTE, ...everyMinute(step, step + 59 * MINUTE))).toMatchObject({ at: MINUTE })
    expect(confirmedAfter(MINUTE, step, step + MINUTE, 3 * MINUTE)).toEqual({ at: 3 * MINUTE, stepAt: null })
  })

  it('follows a step when the clock has run on for an hour', () => {
    const month = 30 * DAY
    const looks = everyMinute(month, month + HOUR)
    expect(confirmedAfter(...looks)).toEqual({ at: month + HOUR, stepAt: null })
  })

  it('lags behind by one opening if there is one a day', () => {
    expect(confirmedByOpenings(DAY, 2 * DAY, 3 * DAY)).toEqual({ at: 2 * DAY, stepAt: 3 * DAY })
  })

  it('does not confirm a step by a further one', () => {
    const century = 36_500 * DAY
    expect(confirmedAfter(MINUTE, DAY, century)).toEqual({ at: MINUTE, stepAt: century })
    expect(confirmedByOpenings(DAY, century)).toEqual({ at: DAY, stepAt: century })
  })

  it('does not confirm a step by the clock of another engine, which was beyond it before', () => {
    const [year, minute] = [365 * DAY, START + MINUTE]
    const first = confirmTime({ at: START, stepAt: null }, START + year, undefined)
    const behind = confirmTime(first, START - year, START - year)
    const right = confirmTime(behind, START, START)
    expect(right).toEqual({ at: START - year, stepAt: START })
    const ahead = confirmTime(right, minute + year, START + year)
    expect(ahead).toEqual({ at: START - year, stepAt: minute + year })
    expect(confirmTime(ahead, minute, START)).toEqual({ at: START - year, stepAt: minute })
  })

  it('goes back with the clock', () => {
    expect(confirmedAfter(-400 * DAY)).toEqual({ at: -400 * DAY, stepAt: null })
    expect(confirmedAfter(-400 * DAY, MINUTE)).toEqual({ at: -400 * DAY, stepAt: MINUTE })
  })

  it('is never ahead of the clock, and never more than a quarter of an hour ahead of what was confirmed', () => {
    const looks = fc.array(fc.integer({ min: 0, max: 4 * HOUR }), { maxLength: 50 })
    fc.assert(
      fc.property(looks, (times) => {
        let known = confirmTime(undefined, START, undefined)
        let seenAt = START
        for (const time of times) {
          const now = START + time
          const next = confirmTime(known, now, seenAt)
          seenAt = now
          expect(next.at).toBeLessThanOrEqual(now)
          if (known.stepAt === null) expect(next.at).toBeLessThan(known.at + 15 * MINUTE)
          known = next
        }
      }),
    )
  })
})
