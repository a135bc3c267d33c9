import { describe, expect, it } from 'vitest'
import { virtualClock } from '../../adapters/testing/index.ts'
import { LazyModule } from '../../src/runtime/lazy-module.ts'
import { macrotask } from '../../src/runtime/macrotask.ts'

/** A load that the test completes. */
interface HeldLoad<Part> {
  readonly promise: Promise<Part>
  readonly come: (part: Part) => void
  readonly fail: (cause: unknown) => void
}

function heldLoad<Part>(): HeldLoad<Part> {
  let come!: (part: Part) => void
  let fail!: (cause: unknown) => void
  const promise = new Promise<Part>((resolve, reject) => {
    come = resolve
    fail = reject
  })
  return { promise, come, fail }
}

function held() {
  const loads: HeldLoad<string>[] = []
  const late = new LazyModule('the cellar', () => {
    const load = heldLoad<string>()
    loads.push(load)
    return load.promise
  })
  return { late, loads }
}

describe('a lazily loaded module', () => {
  it('is loaded once for all callers', async () => {
    const { late, loads } = held()
    expect(loads).toHaveLength(0)
    const asked = [late.load(), late.load()]
    expect([loads.length, late.part]).toEqual([1, undefined])
    loads[0]!.come('here')
    expect(await Promise.all([...asked, late.load()])).toEqual(['here', 'here', 'here'])
    expect([loads.length, late.part]).toEqual([1, 'here'])
  })

  it('is `unavailable` to all callers if the code cannot be loaded, and loaded by the next call', async () => {
    const { late, loads } = held()
    const cause = new TypeError('Failed to fetch dynamically imported module')
    const asked = [late.load(), late.load()]
    loads[0]!.fail(cause)
    for (const { reason } of (await Promise.allSettled(asked)) as PromiseRejectedResult[]) {
      expect(reason).toMatchObject({
        code: 'unavailable',
        message: 'the cellar could not be loaded',
        mayHaveEffects: false,
        cause,
      })
    }
    const again = late.load()
    loads[1]!.come('here')
    expect(await again).toBe('here')
  })

  it('rejects a caller whose signal aborts, and continues to load', async () => {
    const { late, loads } = held()
    const ending = new AbortController()
    const [ended, asked] = [late.load(ending.signal), late.load()]
    ending.abort('enough')
    await expect(ended).rejects.toBe('enough')
    loads[0]!.come('here')
    expect(await asked).toBe('here')
    expect(await late.load(ending.signal)).toBe('here')
  })

  it('resolves in the order of the calls, including calls made just as it loads', async () => {
    const { late, loads } = held()
    const order: string[] = []
    const { signal } = new AbortController()
    const ask = (who: string) => late.load(signal).then(() => order.push(who))
    const asked = [ask('before')]
    const askWhenThere = () => {
      if (late.part === undefined) queueMicrotask(askWhenThere)
      else asked.push(ask('when it came'))
    }
    askWhenThere()
    loads[0]!.come('here')
    await macrotask()
    await Promise.all(asked)
    expect(order).toEqual(['before', 'when it came'])
  })

  it('is awaited by virtual clocks, whether loading succeeds or not', async () => {
    // More turns than a clock waits for anything else.
    const turns = async () => {
      for (let turn = 0; turn < 200; turn++) await macrotask()
    }
    const clock = virtualClock()
    const told: string[] = []
    new LazyModule('the cellar', turns)
      .load()
      .then(() => clock.schedule(5, () => told.push('came, and a timer fired')))
    const failing = async () => {
      await turns()
      throw new Error('no network')
    }
    new LazyModule('the attic', failing).load().catch(() => told.push('did not come'))
    await clock.advance(5)
    expect(told.toSorted()).toEqual(['came, and a timer fired', 'did not come'])
  })
})
