// @module-tag slow

import { describe, test } from 'vitest'
import { conformanceSuite } from '../../adapters/conformance/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { faultyStorage, virtualClock } from '../../adapters/testing/index.ts'
import type { Clock } from '../../src/runtime/clock.ts'
import type { Storage } from '../../src/storage/contract.ts'
import { storageFaultsAtRandom } from '../support/random-faults.ts'

/** It keeps the whole contract without faults. */
describe('a faulty storage without faults conforms to the storage contract', () => {
  conforms(() => faultyStorage(memory(), { notifications: 'reliable' }), virtualClock())
})

/** Delays of 0 ms, during which everything else runs. */
const turningClock: Clock = {
  now: () => 0,
  schedule(delayMs, callback) {
    let isCancelled = false
    const waitTurns = (turnsLeft: number): void => {
      if (isCancelled) return
      if (turnsLeft <= 0) callback()
      else setImmediate(waitTurns, turnsLeft - 1)
    }
    waitTurns(delayMs)
    return () => {
      isCancelled = true
    }
  },
}

const CALLS = ['get', 'list', 'commit', 'head', 'append', 'read', 'reclaim', 'measure'] as const

/**
 * Delays break no promise: appends to a log keep their order, closing waits, and resolved writes are stored.
 */
describe('a faulty storage with delays only', () => {
  const delay = [0, 3] as const
  const rates = Object.fromEntries([...CALLS, 'open'].map((call) => [call, { delay }]))
  const make = () => {
    const storage = faultyStorage(memory(), { notifications: 'reliable' })
    storageFaultsAtRandom(storage, 1, rates)
    return storage
  }
  conforms(make, turningClock)
})

function conforms(make: () => Storage, clock: Clock): void {
  const suite = conformanceSuite({
    manifest: make().manifest,
    make: async () => ({ storage: make(), dispose: async () => {} }),
    keepsDataWhenClosed: true,
    clock,
    seeds: [1],
    randomOperations: 50,
    notificationMsMax: 60_000,
  })
  for (const { title, skip, run } of suite) if (skip === undefined) test(title, run)
}
