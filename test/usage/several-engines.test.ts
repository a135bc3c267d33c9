import { describe, expect, it } from 'vitest'
import type { StorageSession } from '../../src/storage/contract.ts'
import { testClock, testStorage, wrapped } from '../support/index.ts'
import {
  activeBasins,
  advanceTo,
  createBasin,
  createStream,
  DAY,
  HOUR,
  MINUTE,
  maintain,
  ofBasin,
  openUsage,
  store,
  type TestUsage,
  usageKeys,
} from './support.ts'

/** Engines on one storage whose commits interleave, so that they conflict. */
async function openSome(count: number): Promise<TestUsage[]> {
  const clock = testClock()
  const storage = wrapped(
    testStorage(),
    {},
    (session): Partial<StorageSession> => ({
      commit: async (changes) => {
        // Every engine has read before one of them writes.
        for (let turn = 0; turn < 20; turn++) await Promise.resolve()
        await session.commit(changes)
      },
    }),
  )
  return Promise.all(Array.from({ length: count }, () => openUsage({ storage, clock })))
}

describe('several engines on one storage', () => {
  it('add up their usage', async () => {
    const engines = await openSome(3)
    const [first] = engines as [TestUsage]
    for (let minute = 0; minute < 10; minute++) {
      await advanceTo(first, minute * MINUTE + 1)
      for (const [index, { usage }] of engines.entries()) usage.delivered('basin-one', 10 ** index)
      for (const { usage } of engines) usage.streamCreated('basin-one')
      // A query stores usage, here in all engines at once.
      await Promise.all(
        engines.map((engine) => ofBasin(engine, 'basin-one', 'read-throughput', [0, 1], 'hour')),
      )
    }
    await advanceTo(first, HOUR)
    expect(engines.flatMap(({ errors }) => errors)).toEqual([])
    for (const engine of engines) {
      expect(await ofBasin(engine, 'basin-one', 'read-throughput', [0, 1], 'hour')).toEqual({
        read_bytes: [[0, 1_110]],
      })
      expect(await activeBasins(engine, [0, 1])).toEqual(['basin-one'])
    }
  })

  it('roll up at the same time without losing or repeating usage', async () => {
    const engines = await openSome(3)
    const [first] = engines as [TestUsage]
    const basins = Array.from({ length: 60 }, (_, index) => `basin-${index}`)
    for (let hour = 0; hour < 5; hour++) {
      await advanceTo(first, hour * HOUR)
      for (const basin of basins) for (const { usage } of engines) usage.delivered(basin, 1)
    }
    await advanceTo(first, 3 * DAY + 2 * HOUR)
    for (const basin of basins) for (const { usage } of engines) usage.delivered(basin, 1)
    const query = ofBasin(first, 'basin-0', 'read-throughput', [0, DAY], 'day')
    await Promise.all(engines.map((engine) => maintain(engine)))
    expect(await query).toEqual({ read_bytes: [[0, 15]] })
    await advanceTo(first, 3 * DAY + 3 * HOUR)
    for (const basin of basins) {
      for (const engine of engines) {
        expect(await ofBasin(engine, basin, 'read-throughput', [0, 3 * DAY + 3 * HOUR], 'day')).toEqual({
          read_bytes: [
            [0, 15],
            [3 * DAY, 3],
          ],
        })
      }
    }
  })

  it('measure the basins once an hour in total', async () => {
    const clock = testClock()
    const storage = testStorage()
    const measured: string[] = []
    const open = (name: string) =>
      openUsage({
        clock,
        storage: wrapped(
          storage,
          {},
          (session): Partial<StorageSession> => ({
            measure: async (logIds) => {
              measured.push(name)
              return session.measure(logIds)
            },
          }),
        ),
      })
    const engines = [await open('one'), await open('two')]
    const [first] = engines as [TestUsage]
    await createBasin(first, 'basin-one')
    await createStream(first, { basin: 'basin-one', stream: 'a' })
    await store(first, 'a', 5)
    for (let hour = 1; hour <= 5; hour++) {
      await advanceTo(first, hour * HOUR)
      await Promise.all(engines.map((engine) => maintain(engine)))
      await Promise.all(engines.map((engine) => maintain(engine)))
      // Nor does an engine that is opened now.
      await maintain(await open('another'))
      expect(measured).toHaveLength(hour)
    }
    expect(await usageKeys(first)).toHaveLength(2)
    expect(await ofBasin(first, 'basin-one', 'storage', [0, 5 * HOUR])).toEqual({
      metered_size: [0, 1, 2, 3, 4].map((hour) => [hour * HOUR, 5]),
    })
  })
})
