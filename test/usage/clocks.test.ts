import { describe, expect, it } from 'vitest'
import type { VirtualClock } from '../../adapters/testing/index.ts'
import { testClock, testStorage } from '../support/index.ts'
import {
  activeBasins,
  advanceTo,
  append,
  createBasin,
  createStream,
  DAY,
  HOUR,
  MINUTE,
  maintain,
  ofBasin,
  openUsage,
} from './support.ts'

const A = { basin: 'basin-one', stream: 'a' }
const YEAR_MS = 365 * 86_400_000

/** A clock with an offset set by the test, whose timers are not affected. */
function skewed(skewMs: number): VirtualClock & { skewMs: number } {
  const inner = testClock()
  return {
    skewMs,
    now() {
      return inner.now() + this.skewMs
    },
    schedule: inner.schedule,
    advance: inner.advance,
    settle: inner.settle,
    get pending() {
      return inner.pending
    },
  }
}

describe('a clock that is wrong by years', () => {
  it('does not stop the measurement of basins on other engines', async () => {
    const storage = testStorage()
    const wrong = await openUsage({ storage, clock: testClock({ now: Date.UTC(2030, 0, 1) }) })
    await maintain(wrong)
    await wrong.usage.close()
    const test = await openUsage({ storage })
    await createBasin(test, 'basin-one')
    await createStream(test, A)
    for (let hour = 1; hour <= 3; hour++) {
      await append(test, A, 100)
      await advanceTo(test, hour * HOUR)
      await maintain(test)
    }
    expect((await ofBasin(test, 'basin-one', 'storage', [0, 3 * HOUR])).metered_size).toEqual([
      [0, 100],
      [HOUR, 200],
      [2 * HOUR, 300],
    ])
    expect(await activeBasins(test, [2 * HOUR, 3 * HOUR])).toEqual(['basin-one'])
  })

  it('does not stop its own engine after it is set right', async () => {
    const clock = skewed(5 * YEAR_MS)
    const test = await openUsage({ clock })
    await maintain(test)
    clock.skewMs = 0
    await createBasin(test, 'basin-one')
    await createStream(test, A)
    await append(test, A, 100)
    await clock.advance('1h')
    await maintain(test)
    await append(test, A, 1)
    expect((await ofBasin(test, 'basin-one', 'storage', [0, HOUR])).metered_size).toEqual([[0, 100]])
  })

  it.each([-55 * YEAR_MS, 5 * YEAR_MS])(
    'adds no operations for an open read when it is set right: off by %d ms',
    async (skewMs) => {
      const clock = skewed(skewMs)
      const test = await openUsage({ clock })
      test.usage.streamingRead('basin-one')
      await clock.advance('30s')
      clock.skewMs = 0
      await clock.advance('3m')
      // As if no time had passed since the last check of the read.
      const { streaming } = await ofBasin(test, 'basin-one', 'read-ops', [0, HOUR / 12])
      expect(streaming).toEqual([
        [2 * MINUTE, 1],
        [3 * MINUTE, 1],
      ])
      const month = [-29 * DAY, HOUR / 12] as const
      expect(await ofBasin(test, 'basin-one', 'read-ops', month, 'day')).toMatchObject({
        streaming: [[0, 2]],
      })
      await test.usage.close()
    },
  )
})
