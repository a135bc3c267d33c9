import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { systemClock } from '../../src/runtime/clock.ts'

const DAY_MS = 86_400_000

describe('system clock', () => {
  beforeEach(() => {
    vi.useFakeTimers({ now: 5000 })
  })
  afterEach(() => {
    // Before the real timers, or else the fake ones would take their place.
    vi.restoreAllMocks()
    vi.useRealTimers()
  })

  test('returns the time of the machine', () => {
    expect(systemClock.now()).toBe(5000)
  })

  test('calls back once after the delay', () => {
    const callback = vi.fn()
    systemClock.schedule(100, callback)
    vi.advanceTimersByTime(99)
    expect(callback).not.toHaveBeenCalled()
    vi.advanceTimersByTime(1)
    vi.advanceTimersByTime(1000)
    expect(callback).toHaveBeenCalledTimes(1)
    expect(vi.getTimerCount()).toBe(0)
  })

  test('calls back at once after a delay that has passed, which is not given to the platform', () => {
    const delays = vi.spyOn(globalThis, 'setTimeout')
    const callback = vi.fn()
    systemClock.schedule(-1, callback)
    vi.advanceTimersByTime(0)
    expect(callback).toHaveBeenCalledTimes(1)
    expect(delays.mock.calls.map(([, delayMs]) => delayMs)).toEqual([0])
  })

  test('cancels a timer, and ignores late or repeated cancellations', () => {
    const callback = vi.fn()
    const cancel = systemClock.schedule(100, callback)
    cancel()
    cancel()
    vi.advanceTimersByTime(1000)
    expect(callback).not.toHaveBeenCalled()
    const cancelLate = systemClock.schedule(100, callback)
    vi.advanceTimersByTime(100)
    cancelLate()
    expect(callback).toHaveBeenCalledTimes(1)
  })

  test.each([2 ** 31 - 1, 2 ** 31, 60 * DAY_MS])('accepts a delay of %d ms', (delayMs) => {
    const callback = vi.fn()
    systemClock.schedule(delayMs, callback)
    vi.advanceTimersByTime(delayMs - 1)
    expect(callback).not.toHaveBeenCalled()
    vi.advanceTimersByTime(1)
    expect(callback).toHaveBeenCalledTimes(1)
    expect(vi.getTimerCount()).toBe(0)
  })

  test('cancels a long delay halfway', () => {
    const callback = vi.fn()
    const cancel = systemClock.schedule(60 * DAY_MS, callback)
    vi.advanceTimersByTime(30 * DAY_MS)
    cancel()
    expect(vi.getTimerCount()).toBe(0)
    vi.advanceTimersByTime(60 * DAY_MS)
    expect(callback).not.toHaveBeenCalled()
  })

  test('never calls back after an infinite delay', () => {
    const callback = vi.fn()
    const cancel = systemClock.schedule(Number.POSITIVE_INFINITY, callback)
    vi.advanceTimersByTime(100 * DAY_MS)
    expect(callback).not.toHaveBeenCalled()
    cancel()
    expect(vi.getTimerCount()).toBe(0)
  })

  test('keeps the process alive for timers, but not for background timers', () => {
    const armed = vi.spyOn(globalThis, 'setTimeout')
    systemClock.schedule(100, () => {})
    systemClock.schedule(100, () => {}, { background: true })
    systemClock.schedule(60 * DAY_MS, () => {}, { background: true })
    vi.advanceTimersByTime(30 * DAY_MS)
    const timers = armed.mock.results.map(({ value }) => (value as NodeJS.Timeout).hasRef())
    expect(timers).toEqual([true, false, false, false])
  })
})
