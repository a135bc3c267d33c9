import { describe, expect, it } from 'vitest'
import {
  advanceTo,
  append,
  createBasin,
  createStream,
  DAY,
  HOUR,
  MINUTE,
  maintain,
  ofAccount,
  ofBasin,
  openUsage,
  START,
  type TestUsage,
  usageKeys,
} from './support.ts'

const A = { basin: 'basin-one', stream: 'a' }

async function tiersOf(test: TestUsage): Promise<string[]> {
  const keys = await usageKeys(test)
  return [...new Set(keys.filter((key) => key.includes('\0basin\0')).map((key) => key.split('\0')[0]!))]
}

/** The interval of the result of a query by hour. */
async function answeredBy({ usage }: TestUsage, seconds: number): Promise<string> {
  const start = (START + seconds) * 1000
  const [metric] = await usage.metrics.basin('basin-one', {
    set: 'read-throughput',
    start,
    end: start + HOUR * 1000,
  })
  return metric?.kind === 'accumulation' ? metric.interval : 'none'
}

describe('old usage', () => {
  it('is kept by minute for 3 days, by hour for 40 and by day for 400, with the same totals', async () => {
    const test = await openUsage()
    const of = (interval: 'minute' | 'hour' | 'day', to = DAY) =>
      ofBasin(test, 'basin-one', 'read-throughput', [0, to], interval).then(({ read_bytes }) => read_bytes)
    for (const seconds of [10, 70, HOUR + 10, 5 * HOUR, DAY, DAY + HOUR]) {
      await advanceTo(test, seconds)
      test.usage.delivered('basin-one', 1)
    }
    const byMinute = [
      [0, 1],
      [MINUTE, 1],
      [HOUR, 1],
      [5 * HOUR, 1],
    ]
    const byHour = [
      [0, 2],
      [HOUR, 1],
      [5 * HOUR, 1],
    ]
    const byDay = [
      [0, 4],
      [DAY, 2],
    ]

    await advanceTo(test, 3 * DAY + HOUR - 1)
    await maintain(test)
    expect(await tiersOf(test)).toEqual(['minutes'])
    expect(await of('minute')).toEqual(byMinute)
    expect(await of('hour')).toEqual(byHour)
    expect(await of('day', 2 * DAY)).toEqual(byDay)

    await advanceTo(test, 3 * DAY + HOUR)
    await maintain(test)
    expect(await tiersOf(test)).toEqual(['hours', 'minutes'])
    expect(await answeredBy(test, 0)).toBe('hour')
    expect(await answeredBy(test, HOUR)).toBe('minute')
    expect(await of('minute')).toEqual(byHour)
    expect(await of('day', 2 * DAY)).toEqual(byDay)

    await advanceTo(test, 41 * DAY - 1)
    await maintain(test)
    expect(await tiersOf(test)).toEqual(['hours'])
    expect(await of('hour')).toEqual(byHour)
    expect(await of('day', 2 * DAY)).toEqual(byDay)

    await advanceTo(test, 41 * DAY)
    await maintain(test)
    expect(await tiersOf(test)).toEqual(['days', 'hours'])
    expect(await answeredBy(test, 0)).toBe('day')
    expect(await of('hour')).toEqual([[0, 4]])
    expect(await of('hour', 2 * DAY)).toEqual(byDay)

    // 2025-01-01 is in the chunk of 100 days that began 89 days earlier.
    await advanceTo(test, 411 * DAY - 1)
    await maintain(test)
    expect(await of('day', 2 * DAY)).toEqual(byDay)
    await advanceTo(test, 511 * DAY)
    await maintain(test)
    expect(await of('day', 2 * DAY)).toEqual([])
    expect(await usageKeys(test)).toEqual([])
  })

  it('is in the right tier for a query, even after years without traffic', async () => {
    const test = await openUsage()
    await advanceTo(test, 5 * HOUR)
    test.usage.delivered('basin-one', 7)
    test.usage.operation('list-basins', undefined)
    await test.usage.close()
    await advanceTo(test, 50 * DAY)
    const next = await openUsage(test)
    expect(await ofBasin(next, 'basin-one', 'read-throughput', [0, DAY])).toEqual({ read_bytes: [[0, 7]] })
    expect(await ofAccount(next, 'account-ops', [0, DAY], 'day')).toEqual({ 'list-basins': [[0, 1]] })
  })

  it('of many scopes is rolled up in steps', async () => {
    const test = await openUsage()
    const basins = Array.from({ length: 130 }, (_, index) => `basin-${index}`)
    for (const hour of [0, 1, 2]) {
      await advanceTo(test, hour * HOUR)
      for (const basin of basins) test.usage.delivered(basin, 1)
    }
    await advanceTo(test, 4 * DAY)
    let steps = 0
    while (await test.usage.maintain()) steps++
    expect(steps).toBeGreaterThanOrEqual(8)
    expect(await usageKeys(test)).toHaveLength(130)
    for (const basin of basins) {
      expect(await ofBasin(test, basin, 'read-throughput', [0, DAY], 'day')).toEqual({ read_bytes: [[0, 3]] })
    }
  })

  it('is searched for once an hour', async () => {
    const test = await openUsage()
    await createBasin(test, 'basin-one')
    await createStream(test, A)
    await append(test, A, 1)
    await advanceTo(test, HOUR)
    await maintain(test)
    test.session.list = () => Promise.reject(new Error('it looked'))
    await advanceTo(test, 2 * HOUR - 1)
    expect(await test.usage.maintain()).toBe(false)
    await advanceTo(test, 2 * HOUR)
    await expect(test.usage.maintain()).rejects.toThrow('it looked')
  })
})
