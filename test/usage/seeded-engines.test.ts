import { describe, expect, it } from 'vitest'
import { open } from '../../src/index.ts'
import { usageMetrics } from '../../src/usage/index.ts'
import { testClock, testStorage, wrapped } from '../support/index.ts'
import { START } from './support.ts'

function seeded(): () => number {
  let state = 7
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return state / 2_147_483_648
  }
}

/** Engines opened with the same seed, one after the other, which append once each. */
async function openThrice(sharesStorage: boolean) {
  const clock = testClock()
  const appendIds: string[] = []
  const logIds: string[] = []
  const storageOf = () =>
    wrapped(testStorage(), {}, (session) => ({
      append: async (request) => {
        appendIds.push(request.head.appendId)
        logIds.push(request.logId)
        return session.append(request)
      },
    }))
  const shared = storageOf()
  for (let i = 0; i < 3; i++) {
    const storage = sharesStorage ? shared : storageOf()
    const hw = await open({ storage, usage: usageMetrics(), clock, random: seeded() })
    await hw.basin('basin-one').stream('s').append('x'.repeat(92))
    await hw.close()
  }
  return { clock, storage: shared, appendIds, logIds }
}

describe('an engine that is opened again with the same seed', () => {
  it('loses no usage', async () => {
    const { clock, storage } = await openThrice(true)
    const hw = await open({ storage, usage: usageMetrics(), clock })
    const range = { start: START * 1000, end: (START + 60) * 1000, interval: 'day' } as const
    const metrics = await hw.basin('basin-one').metrics({ set: 'append-throughput', ...range })
    const values = metrics.flatMap((metric) => (metric.kind === 'accumulation' ? metric.values : []))
    expect(values).toEqual([[START * 1000, 300]])
    await hw.close()
  })

  it('gives its flushes different ids', async () => {
    const { appendIds } = await openThrice(true)
    expect(new Set(appendIds).size).toBe(3)
  })

  it('gives its logs the same ids', async () => {
    const { logIds } = await openThrice(false)
    expect(logIds).toHaveLength(3)
    expect(new Set(logIds).size).toBe(1)
  })
})
