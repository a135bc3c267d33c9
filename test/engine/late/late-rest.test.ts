import { describe, expect, it } from 'vitest'
import { LateRest } from '../../../src/engine/late-rest.ts'
import { settingsOf } from '../../../src/engine/options.ts'
import type { Rest } from '../../../src/engine/rest.ts'
import type { Clock } from '../../../src/storage/clock.ts'
import { testStorage } from '../../test-storage.ts'
import { type HeldLoad, heldLoad } from './support.ts'

/** Fires all that is armed when the test says so. A virtual clock would wait for the code, which comes only when the test says so. */
function handClock() {
  let now = 0
  const timers = new Map<() => void, number>()
  const clock: Clock = {
    now: () => now,
    schedule(delayMs, callback) {
      timers.set(callback, now + delayMs)
      return () => void timers.delete(callback)
    },
  }
  const advanceTo = (time: number) => {
    now = time
    for (const [callback, at] of timers) {
      if (at > now) continue
      timers.delete(callback)
      callback()
    }
  }
  return { clock, advanceTo, pending: () => timers.size }
}

/** The rest of an engine, of which is only looked at what is told to it. */
function lateRest() {
  const { clock, advanceTo, pending } = handClock()
  const told: unknown[] = []
  const errors: unknown[] = []
  const loads: HeldLoad<Rest>[] = []
  const closing = new AbortController()
  const rest = {
    told,
    start: (chance: number) => told.push(chance),
    close: async () => void told.push('closed'),
  } as unknown as Rest
  const settings = settingsOf({
    storage: testStorage(),
    clock,
    random: () => 0.25,
    onBackgroundError: (error) => errors.push(error),
  })
  const late = new LateRest(settings, closing.signal, () => {
    const load = heldLoad<Rest>()
    loads.push(load)
    return load.promise
  })
  const tell = (what: unknown) => late.tell(() => told.push(what))
  const close = () => {
    closing.abort(new Error('closing'))
    return late.close()
  }
  return { late, rest, loads, told, errors, tell, close, advanceTo, pending }
}

describe('the rest of an engine', () => {
  it('is told in order what came before it, then starts, and is told at once what comes later', async () => {
    const { late, rest, loads, told, tell } = lateRest()
    const started = late.start()
    tell(1)
    tell(2)
    loads[0]!.come(rest)
    await started
    tell(3)
    expect(told).toEqual([1, 2, 0.25, 3])
  })

  it('is asked for again every minute while it cannot be had; each failure is reported', async () => {
    const { late, rest, loads, told, errors, tell, advanceTo, pending } = lateRest()
    tell('before')
    for (const minute of [0, 1]) {
      const attempt = minute === 0 ? late.start() : undefined
      advanceTo(minute * 60_000)
      expect(loads).toHaveLength(minute + 1)
      loads[minute]!.fail('no network')
      await attempt
      await expect.poll(() => errors).toHaveLength(minute + 1)
      expect(errors[minute]).toMatchObject({ code: 'unavailable', cause: 'no network' })
    }
    expect(pending()).toBe(1)
    advanceTo(120_000)
    loads[2]!.come(rest)
    await expect.poll(() => told).toEqual(['before', 0.25])
    expect([errors.length, pending()]).toEqual([2, 0])
  })

  it('is not told more than 100,000 things late; that some are lost is reported once', async () => {
    const { late, rest, loads, told, errors, tell } = lateRest()
    const started = late.start()
    for (let i = 0; i < 100_002; i++) tell(i)
    expect(errors).toMatchObject([{ code: 'unavailable', message: expect.stringContaining('usage') }])
    loads[0]!.come(rest)
    await started
    expect([told.length, told.at(-2), told.at(-1)]).toEqual([100_001, 99_999, 0.25])
  })

  it('is told the rest when one message fails, which is reported', async () => {
    const { late, rest, loads, told, errors, tell } = lateRest()
    const failure = new Error('no such method')
    late.tell(() => {
      throw failure
    })
    tell('next')
    const started = late.start()
    loads[0]!.come(rest)
    await started
    expect([told, errors]).toEqual([['next', 0.25], [failure]])
  })

  it('an engine that closes waits for it when it has something to be told, and does not start it', async () => {
    const { late, rest, loads, told, errors, tell, close, pending } = lateRest()
    void late.start()
    tell('usage')
    const closed = close()
    expect(pending()).toBe(1)
    loads[0]!.come(rest)
    await closed
    expect([told, errors, pending()]).toEqual([['usage', 'closed'], [], 0])
  })

  it('waits no longer than 5 s, and reports what is lost; what comes then does not begin', async () => {
    const { late, rest, loads, told, errors, tell, close, advanceTo, pending } = lateRest()
    void late.start()
    tell('usage')
    const closed = close()
    advanceTo(5_000)
    await closed
    expect(errors).toMatchObject([{ code: 'unavailable', message: expect.stringContaining('usage') }])
    loads[0]!.come(rest)
    await expect(late.load()).rejects.toThrow('closing')
    expect([told, pending()]).toEqual([[], 0])
  })

  it('keeps nobody waiting who closes without having used it, nor those who wait for it then', async () => {
    const { late, loads, errors, close, pending } = lateRest()
    void late.start()
    const asked = late.load()
    await Promise.all([expect(asked).rejects.toThrow('closing'), close()])
    loads[0]!.fail('no network')
    await expect(late.load()).rejects.toThrow('closing')
    expect([errors, pending()]).toEqual([[], 0])
  })

  it('is waited for by those who must come after a call that may create something', async () => {
    const { late, rest, loads } = lateRest()
    const order: string[] = []
    await late.creationsBegan()
    const call = late.loadToCreate().then(() => order.push('creates'))
    const after = late.creationsBegan().then(() => order.push('comes after'))
    loads[0]!.come(rest)
    await Promise.all([call, after])
    expect(order).toEqual(['creates', 'comes after'])
  })
})
