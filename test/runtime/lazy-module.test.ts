import { describe, expect, it } from 'vitest'
import { virtualClock } from '../../adapters/testing/index.ts'
import { LazyModule } from '../../src/runtime/lazy-module.ts'
import { macrotask } from '../../src/runtime/macrotask.ts'
import { deferred } from '../support/deferred.ts'

/** A module whose loads the test completes. */
function lazyModule() {
  const loads: ReturnType<typeof deferred<string>>[] = []
  const module = new LazyModule('the module', () => {
    const load = deferred<string>()
    loads.push(load)
    return load.promise
  })
  return { module, loads }
}

describe('a lazily loaded module', () => {
  it('is loaded once for all callers', async () => {
    const { module, loads } = lazyModule()
    expect(loads).toHaveLength(0)
    const loaded = [module.load(), module.load()]
    expect([loads.length, module.part]).toEqual([1, undefined])
    loads[0]!.resolve('loaded')
    expect(await Promise.all([...loaded, module.load()])).toEqual(['loaded', 'loaded', 'loaded'])
    expect([loads.length, module.part]).toEqual([1, 'loaded'])
  })

  it('is `unavailable` to all callers if the code cannot be loaded, and loaded by the next call', async () => {
    const { module, loads } = lazyModule()
    const cause = new TypeError('Failed to fetch dynamically imported module')
    const loaded = [module.load(), module.load()]
    loads[0]!.reject(cause)
    for (const { reason } of (await Promise.allSettled(loaded)) as PromiseRejectedResult[]) {
      expect(reason).toMatchObject({
        code: 'unavailable',
        message: 'the module could not be loaded',
        mayHaveEffects: false,
        cause,
      })
    }
    const retried = module.load()
    loads[1]!.resolve('loaded')
    expect(await retried).toBe('loaded')
  })

  it('resolves in the order of the calls, including calls made just as it loads', async () => {
    const { module, loads } = lazyModule()
    const order: string[] = []
    const load = (name: string) => module.load().then(() => order.push(name))
    const calls = [load('before')]
    const loadOnceLoaded = () => {
      if (module.part === undefined) queueMicrotask(loadOnceLoaded)
      else calls.push(load('just as it loads'))
    }
    loadOnceLoaded()
    loads[0]!.resolve('loaded')
    await macrotask()
    await Promise.all(calls)
    expect(order).toEqual(['before', 'just as it loads'])
  })

  it('is awaited by virtual clocks, whether loading succeeds or not', async () => {
    // More turns than a clock waits for anything else.
    const manyTurns = async () => {
      for (let turn = 0; turn < 200; turn++) await macrotask()
    }
    const clock = virtualClock()
    const outcomes: string[] = []
    new LazyModule('the module', manyTurns)
      .load()
      .then(() => clock.schedule(5, () => outcomes.push('loaded, and a timer fired')))
    const failing = async () => {
      await manyTurns()
      throw new Error('no network')
    }
    new LazyModule('another module', failing).load().catch(() => outcomes.push('failed'))
    await clock.advance(5)
    expect(outcomes.toSorted()).toEqual(['failed', 'loaded, and a timer fired'])
  })
})
