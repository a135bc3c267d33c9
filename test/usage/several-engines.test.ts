import { describe, expect, it } from 'vitest'
import type { StorageSession } from '../../src/storage/contract.ts'
import { testClock, testStorage, wrapped } from '../support/index.ts'
import { activeBasins, advanceTo, HOUR, MINUTE, ofBasin, openUsage, type TestUsage } from './support.ts'

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
})
