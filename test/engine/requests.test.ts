import { afterEach, describe, expect, it, vi } from 'vitest'
import { memory } from '../../adapters/storage/memory/index.ts'
import { type Engine, open } from '../../src/index.ts'
import { macrotask } from '../../src/runtime/macrotask.ts'
import { usageMetrics } from '../../src/usage/index.ts'
import { wrapped } from '../support/index.ts'

let hw: Engine
afterEach(async () => {
  vi.unstubAllGlobals()
  vi.restoreAllMocks()
  await hw.close()
})

/** Resolves to the number of calls of `reclaim` since the last one. */
function countingStorage() {
  let calls = 0
  const storage = wrapped(memory(), {}, (session) => ({
    reclaim(limits) {
      calls++
      return session.reclaim(limits)
    },
  }))
  return {
    storage,
    reclaimCalls: () => {
      const count = calls
      calls = 0
      return count
    },
  }
}

describe('a runtime that ties timers, random numbers and signals to requests, such as workerd', () => {
  it('opens an engine outside of requests, and starts background work with an append', async () => {
    const { storage, reclaimCalls } = countingStorage()
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
    expect(reclaimCalls()).toBe(0)
    await hw.basin('my-app').stream('a').append('first')
    await macrotask()
    expect(reclaimCalls()).toBe(1)
  })
})
