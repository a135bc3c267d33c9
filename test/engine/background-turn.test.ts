import { afterEach, describe, expect, it } from 'vitest'
import { memory } from '../../adapters/storage/memory/index.ts'
import { virtualClock } from '../../adapters/testing/index.ts'
import { type Headwater, open, type StorageSession } from '../../src/index.ts'
import { wrapped } from './wrapped-storage.ts'

/** A storage that gives turns by hand, and counts the work that depends on them. */
function turning() {
  const calls = { reclaim: 0, deadlines: 0, tokens: 0, ended: 0 }
  let onTurn: ((isOurs: boolean) => void) | undefined
  const storage = wrapped(memory(), {}, (session) => ({
    backgroundTurn(callback) {
      onTurn = callback
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
  return { storage, calls, turn: (isOurs: boolean) => onTurn!(isOurs) }
}

let hw: Headwater
afterEach(() => hw.close())

const NOTHING = { reclaim: 0, deadlines: 0, tokens: 0, ended: 0 }

describe('background work on a storage that gives turns', () => {
  it('waits for the turn', async () => {
    const { storage, calls, turn } = turning()
    const clock = virtualClock()
    // Runs are a minute apart, exactly.
    hw = await open({ storage, clock, random: () => 0.5 })
    await clock.advance('3m')
    expect(calls).toEqual(NOTHING)
    turn(true)
    await clock.settle()
    expect(calls).toEqual({ ...NOTHING, reclaim: 1, deadlines: 1, tokens: 1 })
    await clock.advance('60s')
    expect(calls.reclaim).toBe(2)
  })

  it('ends with the turn', async () => {
    const { storage, calls, turn } = turning()
    const clock = virtualClock()
    hw = await open({ storage, clock })
    turn(true)
    await clock.settle()
    turn(false)
    const before = { ...calls }
    await clock.advance('3m')
    expect(calls).toEqual(before)
  })

  it('ends in the middle, when the turn does', async () => {
    const { turn, ...inner } = turning()
    const clock = virtualClock()
    let reclaims = 0
    const storage = wrapped(inner.storage, {}, () => ({
      // There is always more.
      async reclaim() {
        if (++reclaims === 5) turn(false)
        return { more: true, logIds: [] }
      },
    }))
    hw = await open({ storage, clock })
    await clock.settle()
    turn(true)
    await clock.settle()
    expect(reclaims).toBe(5)
    expect(inner.calls.deadlines).toBe(0)
  })

  it('is given up when the engine closes', async () => {
    const { storage, calls } = turning()
    hw = await open({ storage })
    await hw.close()
    expect(calls.ended).toBe(1)
  })

  it('without the turn, a basin that was deleted here goes all the same', async () => {
    const { storage } = turning()
    const clock = virtualClock()
    hw = await open({ storage, clock })
    await hw.basin('gone').stream('a').append('x')
    await hw.deleteBasin('gone')
    await clock.settle()
    const { items } = await hw.listBasins()
    expect(items).toEqual([])
  })

  it('a turn that is given at once is one run', async () => {
    let reclaims = 0
    const storage = wrapped(memory(), {}, (session) => ({
      backgroundTurn(onTurn) {
        onTurn(true)
        return () => {}
      },
      reclaim(limits): ReturnType<StorageSession['reclaim']> {
        reclaims++
        return session.reclaim(limits)
      },
    }))
    const clock = virtualClock()
    hw = await open({ storage, clock })
    await clock.settle()
    expect(reclaims).toBe(1)
  })
})
