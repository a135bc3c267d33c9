import { afterEach, describe, expect, it, vi } from 'vitest'
import { memory } from '../../adapters/storage/memory/index.ts'
import { virtualClock } from '../../adapters/testing/index.ts'
import { type Headwater, open } from '../../src/index.ts'
import { usageMetrics } from '../../src/usage/index.ts'
import { wrapped } from '../support/index.ts'

let hw: Headwater
afterEach(async () => {
  vi.unstubAllGlobals()
  vi.restoreAllMocks()
  await hw.close()
})

/** Resolves to the number of calls of `reclaim` since the last one. */
function counted() {
  let calls = 0
  const storage = wrapped(memory(), {}, (session) => ({
    reclaim(limits) {
      calls++
      return session.reclaim(limits)
    },
  }))
  return {
    storage,
    taken: () => {
      const taken = calls
      calls = 0
      return taken
    },
  }
}

describe('a runtime that ties timers, random numbers and signals to requests, such as workerd', () => {
  it('opens an engine outside of requests, and starts the background work with the first append', async () => {
    const { storage, taken } = counted()
    const forbidden = () => {
      throw new Error('not outside of requests')
    }
    vi.stubGlobal('setTimeout', forbidden)
    vi.stubGlobal(
      'AbortController',
      class {
        constructor() {
          forbidden()
        }
      },
    )
    vi.spyOn(globalThis.crypto, 'getRandomValues').mockImplementation(forbidden)
    hw = await open({ storage, usage: usageMetrics() })
    vi.unstubAllGlobals()
    vi.restoreAllMocks()
    expect(taken()).toBe(0)
    await hw.basin('my-app').stream('a').append('first')
    expect(taken()).toBe(1)
  })

  it('runs the background work again after an append if its timers were lost', async () => {
    const clock = virtualClock()
    let isLosing = false
    const losing = {
      now: () => clock.now(),
      schedule: (...args: Parameters<typeof clock.schedule>) =>
        isLosing ? () => {} : clock.schedule(...args),
    }
    const { storage, taken } = counted()
    isLosing = true
    hw = await open({ storage, clock: losing })
    const stream = hw.basin('my-app').stream('a')
    await stream.append('one')
    expect(taken()).toBe(1)
    await clock.advance('2m')
    await stream.append('two')
    expect(taken()).toBe(0)
    isLosing = false
    await clock.advance('2m')
    await stream.append('three')
    expect(taken()).toBe(1)
    await clock.advance('2m')
    expect(taken()).toBeGreaterThan(0)
  })
})
