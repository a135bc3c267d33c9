import { afterEach, describe, expect, it } from 'vitest'
import { memory } from '../../../adapters/storage/memory/index.ts'
import { virtualClock } from '../../../adapters/testing/index.ts'
import { type Engine, open } from '../../../src/index.ts'
import type { StorageSession } from '../../../src/storage/contract.ts'
import { StorageFailure, type StorageFailureKind } from '../../../src/storage/errors.ts'
import { wrapped } from '../../support/index.ts'

/** A storage whose elections the test decides, and which counts the work that depends on them. */
function storageWithElections() {
  const calls = { reclaim: 0, deadlines: 0, tokens: 0, ended: 0 }
  let onElected: ((isElected: boolean) => void) | undefined
  const storage = wrapped(memory(), {}, (session) => ({
    electForBackgroundWork(callback) {
      onElected = callback
      return () => {
        calls.ended++
      }
    },
    reclaim(limits) {
      calls.reclaim++
      return session.reclaim(limits)
    },
    list(collection, range) {
      if (collection in calls) calls[collection as 'deadlines' | 'tokens']++
      return session.list(collection, range)
    },
  }))
  return { storage, calls, elect: (isElected: boolean) => onElected!(isElected) }
}

let hw: Engine
afterEach(() => hw.close())

const NOTHING = { reclaim: 0, deadlines: 0, tokens: 0, ended: 0 }

describe('background work on a storage with elections', () => {
  it('begins when the engine is elected', async () => {
    const { storage, calls, elect } = storageWithElections()
    const clock = virtualClock()
    // Runs are a minute apart, exactly.
    hw = await open({ storage, clock, random: () => 0.5 })
    await clock.advance('3m')
    expect(calls).toEqual(NOTHING)
    elect(true)
    await clock.settle()
    expect(calls).toEqual({ ...NOTHING, reclaim: 1, deadlines: 3, tokens: 1 })
    await clock.advance('60s')
    expect(calls.reclaim).toBe(2)
  })

  it('ends when the engine is no longer elected', async () => {
    const { storage, calls, elect } = storageWithElections()
    const clock = virtualClock()
    hw = await open({ storage, clock })
    elect(true)
    await clock.settle()
    elect(false)
    const before = { ...calls }
    await clock.advance('3m')
    expect(calls).toEqual(before)
  })

  it('stops when the engine closes', async () => {
    const { storage, calls } = storageWithElections()
    hw = await open({ storage })
    await hw.close()
    expect(calls.ended).toBe(1)
  })

  it('removes a basin that this engine deleted, even if it is not elected', async () => {
    const { storage } = storageWithElections()
    const clock = virtualClock()
    hw = await open({ storage, clock })
    await hw.basin('gone').stream('a').append('x')
    await hw.basin('gone').delete()
    await clock.settle()
    const { items } = await hw.listBasins()
    expect(items).toEqual([])
  })
})

describe('reclaiming that fails', () => {
  function failing(kind: StorageFailureKind) {
    const control = { calls: 0, fails: true }
    const storage = wrapped(memory(), {}, (session) => ({
      reclaim(limits): ReturnType<StorageSession['reclaim']> {
        control.calls++
        if (!control.fails) return session.reclaim(limits)
        return Promise.reject(new StorageFailure(kind, 'it fails', { nothingWritten: true }))
      },
    }))
    return { storage, control }
  }

  it('is retried soon for lack of space, then at growing intervals', async () => {
    const { storage, control } = failing('quota')
    const clock = virtualClock()
    const errors: unknown[] = []
    hw = await open({ storage, clock, random: () => 0.5, onBackgroundError: (error) => errors.push(error) })
    await clock.settle()
    const calls: number[] = [control.calls]
    for (const seconds of [1, 2, 4, 8]) {
      await clock.advance(seconds * 1_000 - 1)
      calls.push(control.calls)
      await clock.advance(1)
      calls.push(control.calls)
    }
    expect(calls).toEqual([1, 1, 2, 2, 3, 3, 4, 4, 5])
    expect(errors.length).toBe(5)
    control.fails = false
    await clock.advance('16s')
    expect([control.calls, errors.length]).toEqual([6, 5])
    // From then on it runs every minute.
    await clock.advance('59s')
    expect(control.calls).toBe(6)
    await clock.advance('1s')
    expect(control.calls).toBe(7)
  })

  it('is retried at the next run for another reason', async () => {
    const { storage, control } = failing('io')
    const clock = virtualClock()
    hw = await open({ storage, clock, random: () => 0.5, onBackgroundError: () => {} })
    await clock.advance('59s')
    expect(control.calls).toBe(1)
    await clock.advance('1s')
    expect(control.calls).toBe(2)
  })
})
