import type { Clock } from '../storage/clock.ts'

/** The longest delay that `setTimeout` takes: a longer one would fire at once. */
const DELAY_MS_MAX = 2 ** 31 - 1

/** The time of the machine. Delays of any length; an infinite one never calls back. */
export const systemClock: Clock = {
  now: () => Date.now(),

  schedule(delayMs, callback, options) {
    let remainingMs = delayMs
    let timer: ReturnType<typeof setTimeout>
    const arm = (): void => {
      const stepMs = Math.min(remainingMs, DELAY_MS_MAX)
      remainingMs -= stepMs
      timer = setTimeout(remainingMs > 0 ? arm : callback, stepMs)
      // Browsers have plain numbers for timers, and no process to keep alive.
      if (options?.background === true && typeof timer === 'object') timer.unref()
    }
    arm()
    return () => clearTimeout(timer)
  },
}
