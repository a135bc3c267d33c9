import { describe, expect, it } from 'vitest'
import { open } from '../../src/index.ts'
import { usageMetrics } from '../../src/usage/index.ts'
import { testClock, testStorage } from '../support/index.ts'
import { START } from './support.ts'

function seeded(): () => number {
  let state = 7
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return state / 2_147_483_648
  }
}

describe('an engine that is opened again with the same seed', () => {
  it('loses no usage', async () => {
    const clock = testClock()
    const storage = testStorage()
    for (let i = 0; i < 3; i++) {
      const hw = await open({ storage, usage: usageMetrics(), clock, random: seeded() })
      await hw.basin('basin-one').stream('s').append('x'.repeat(92))
      await hw.close()
    }
    const hw = await open({ storage, usage: usageMetrics(), clock })
    const range = { start: START * 1000, end: (START + 60) * 1000, interval: 'day' } as const
    const metrics = await hw.basin('basin-one').metrics({ set: 'append-throughput', ...range })
    const values = metrics.flatMap((metric) => (metric.kind === 'accumulation' ? metric.values : []))
    expect(values).toEqual([[START * 1000, 300]])
    await hw.close()
  })
})
