import { beforeEach, describe, expect, it } from 'vitest'
import {
  activeBasins,
  advanceTo,
  createBasin,
  createStream,
  DAY,
  deleteStream,
  HOUR,
  MINUTE,
  openUsage,
  START,
  secondsOf,
  type TestUsage,
  upkeep,
} from './support.ts'

const A = { basin: 'basin-one', stream: 'a' }

let test: TestUsage

beforeEach(async () => {
  test = await openUsage()
})

/** The hours, counted from the start, in which a query reports a basin as active. */
async function hoursOf(basin: string, count: number): Promise<number[]> {
  const hours: number[] = []
  for (let hour = 0; hour < count; hour++) {
    const active = await activeBasins(test, [hour * HOUR, hour * HOUR + 1])
    if (active.includes(basin)) hours.push(hour)
  }
  return hours
}

/** Advances the time, with upkeep at each hour. */
async function runUntil(seconds: number): Promise<void> {
  for (;;) {
    const now = secondsOf(test.clock) - START
    await advanceTo(test, Math.min(seconds, (Math.floor(now / HOUR) + 1) * HOUR))
    await upkeep(test)
    if (secondsOf(test.clock) - START >= seconds) return
  }
}

describe('active basins', () => {
  it('are those with a stream, in order of name', async () => {
    for (const basin of ['basin-two', 'basin-one', 'basin-ten', 'basin-none']) await createBasin(test, basin)
    await createStream(test, A)
    await createStream(test, { basin: 'basin-two', stream: 'b' })
    test.usage.basinActive('basin-ten')
    expect(await activeBasins(test, [0, 1])).toEqual(['basin-one', 'basin-ten', 'basin-two'])
  })

  it('may be more than one page', async () => {
    const basins = Array.from({ length: 1_100 }, (_, index) => `basin-${String(index).padStart(4, '0')}`)
    for (const basin of basins) test.usage.basinActive(basin)
    expect(await activeBasins(test, [0, 1])).toEqual(basins)
  })

  it('are counted in each hour in which they had a stream', async () => {
    await createBasin(test, 'basin-one')
    await runUntil(HOUR + 30)
    await createStream(test, A)
    test.usage.basinActive('basin-one')
    await runUntil(3 * HOUR + 10)
    await deleteStream(test, A)
    test.usage.basinActive('basin-one')
    await runUntil(6 * HOUR + 10)
    await createStream(test, A, 'another')
    test.usage.basinActive('basin-one')
    await runUntil(9 * HOUR)
    expect(await hoursOf('basin-one', 10)).toEqual([1, 2, 3, 6, 7, 8, 9])
    expect(await activeBasins(test, [4 * HOUR, 6 * HOUR])).toEqual([])
    expect(await activeBasins(test, [4 * HOUR, 6 * HOUR + 1])).toEqual(['basin-one'])
    expect(await activeBasins(test, [3 * HOUR + 3_000, 3 * HOUR + 3_000])).toEqual(['basin-one'])
  })

  it('include those whose streams were not reported, in each hour in which an engine was open', async () => {
    await createBasin(test, 'basin-one')
    await createStream(test, A)
    await advanceTo(test, 4 * HOUR)
    await runUntil(6 * HOUR)
    await advanceTo(test, 6 * HOUR + 1)
    await deleteStream(test, A)
    await runUntil(8 * HOUR)
    expect(await hoursOf('basin-one', 9)).toEqual([5, 6])
  })

  it('survive a restart', async () => {
    test.usage.basinActive('basin-one')
    await test.usage.close()
    test = await openUsage(test)
    expect(await activeBasins(test, [0, 1])).toEqual(['basin-one'])
  })

  it('are kept by day after 40 days, and removed after 400', async () => {
    await advanceTo(test, 30 * HOUR)
    test.usage.basinActive('basin-one')
    await advanceTo(test, 31 * HOUR)
    const secondDay = Array.from({ length: 24 }, (_, index) => 24 + index)
    for (const [day, hours] of [
      [40, [30]],
      [45, secondDay],
      [400, secondDay],
      [510, []],
    ] as const) {
      await advanceTo(test, day * DAY)
      await upkeep(test)
      expect(await hoursOf('basin-one', 72)).toEqual(hours)
    }
  })

  it('are counted up to the time of a query that includes the present', async () => {
    await createBasin(test, 'basin-one')
    await createStream(test, A)
    const now = 5 * HOUR + MINUTE
    await advanceTo(test, now)
    expect(await activeBasins(test, [now, now + 1])).toEqual(['basin-one'])
  })
})
