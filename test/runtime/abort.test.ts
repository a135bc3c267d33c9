import { describe, expect, it } from 'vitest'
import { onAnyAbort, unlessAborted } from '../../src/runtime/abort.ts'
import { deferred } from '../support/deferred.ts'

const REASON = new Error('aborted')

describe('unlessAborted', () => {
  function startWork() {
    const { promise, resolve, reject } = deferred<string>()
    const controller = new AbortController()
    const discarded: string[] = []
    const result = unlessAborted(controller.signal, promise, (result) => void discarded.push(result))
    return { resolve, reject, controller, discarded, result }
  }

  it('discards the result of work that succeeds after the abort', async () => {
    const { resolve, controller, discarded, result } = startWork()
    controller.abort(REASON)
    await expect(result).rejects.toBe(REASON)
    expect(discarded).toEqual([])
    resolve('late')
    await settled()
    expect(discarded).toEqual(['late'])
  })

  it('discards nothing when the abort follows the result in the same turn', async () => {
    const { resolve, controller, discarded, result } = startWork()
    resolve('done')
    await Promise.resolve()
    controller.abort(REASON)
    await expect(result).resolves.toBe('done')
    await settled()
    expect(discarded).toEqual([])
  })

  it('rejects at once, and discards the result, if the signal has already aborted', async () => {
    const discarded: string[] = []
    const work = Promise.resolve('late')
    const result = unlessAborted(AbortSignal.abort(REASON), work, (result) => void discarded.push(result))
    await expect(result).rejects.toBe(REASON)
    await settled()
    expect(discarded).toEqual(['late'])
  })

  it('discards nothing when the work fails, before or after the abort', async () => {
    const first = startWork()
    first.reject(new Error('failed'))
    await expect(first.result).rejects.toThrow('failed')
    const second = startWork()
    second.controller.abort(REASON)
    second.reject(new Error('failed'))
    await expect(second.result).rejects.toBe(REASON)
    await settled()
    expect([...first.discarded, ...second.discarded]).toEqual([])
  })
})

describe('onAnyAbort', () => {
  it('calls back with the reason of each signal that aborts, until it is cancelled', () => {
    const [first, second, third] = [new AbortController(), new AbortController(), new AbortController()]
    const reasons: unknown[] = []
    const signals = [first.signal, undefined, second.signal, third.signal]
    const cancel = onAnyAbort(signals, (reason) => void reasons.push(reason))
    second.abort('other')
    first.abort('one')
    cancel()
    third.abort('later')
    expect(reasons).toEqual(['other', 'one'])
  })

  it('calls back synchronously for a signal that has already aborted', () => {
    const reasons: unknown[] = []
    onAnyAbort([AbortSignal.abort(REASON)], (reason) => void reasons.push(reason))
    expect(reasons).toEqual([REASON])
  })
})

/** Lets all callbacks of promises run. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
