import { expect, it, vi } from 'vitest'
import { onAbort, SharedSignal } from '../../src/runtime/abort.ts'

it('aborts once, with the first reason', () => {
  const signal = new SharedSignal()
  const calls: unknown[] = []
  onAbort(signal, () => calls.push(signal.reason))
  expect(() => signal.throwIfAborted()).not.toThrow()
  signal.abort('first')
  signal.abort('second')
  expect(calls).toEqual(['first'])
  expect(signal.aborted).toBe(true)
  expect(() => signal.throwIfAborted()).toThrow('first')
})

it('is the same AbortSignal each time, before and after it aborts', () => {
  const signal = new SharedSignal()
  const standard = signal.asAbortSignal()
  expect(signal.asAbortSignal()).toBe(standard)
  signal.abort('reason')
  expect([standard.aborted, standard.reason]).toEqual([true, 'reason'])

  const aborted = new SharedSignal()
  aborted.abort('before')
  expect(aborted.asAbortSignal().reason).toBe('before')
})

it('creates an AbortController only when an AbortSignal is requested', () => {
  vi.stubGlobal('AbortController', undefined)
  const signal = new SharedSignal()
  onAbort(signal, () => {})
  expect(() => signal.asAbortSignal()).toThrow(TypeError)
  signal.abort('reason')
  vi.unstubAllGlobals()
  expect(signal.asAbortSignal().reason).toBe('reason')
})
