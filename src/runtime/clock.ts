/** The source of time and timers. `headwater/testing` has a virtual one. */
export interface Clock {
  /** Milliseconds since the Unix epoch. */
  now(): number
  /**
   * Calls back once after `delayMs`. The returned function cancels the timer; it does nothing once the timer
   * has fired or was cancelled.
   */
  schedule(delayMs: number, callback: () => void, options?: ScheduleOptions): () => void
  /** Whether a test sets the time, so that storages do not use a clock of their own. False by default. */
  readonly isVirtual?: boolean | undefined
}

/** Options of a timer. */
export interface ScheduleOptions {
  /** Whether the timer lets a process with nothing else to do exit before it fires. False by default. */
  readonly background?: boolean | undefined
}

/** The longest delay of `setTimeout`; a longer one would fire at once. */
const DELAY_MS_MAX = 2 ** 31 - 1

/** The system time. Delays may have any length; an infinite one never fires. */
export const systemClock: Clock = {
  now: () => Date.now(),

  schedule(delayMs, callback, options) {
    let remainingMs = delayMs
    let timer: ReturnType<typeof setTimeout>
    const arm = (): void => {
      // What is due already may be late, and Node 24 warns of a negative delay.
      const stepMs = Math.max(0, Math.min(remainingMs, DELAY_MS_MAX))
      remainingMs -= stepMs
      timer = setTimeout(remainingMs > 0 ? arm : callback, stepMs)
      // Browsers return a number and have no process to keep alive.
      if (options?.background === true && typeof timer === 'object') timer.unref()
    }
    arm()
    return () => clearTimeout(timer)
  },
}

/** A clock that is ahead of another one by an offset that may change, in milliseconds. */
export function offsetClock(clock: Clock, offsetMs: () => number): Clock {
  return {
    now: () => clock.now() + offsetMs(),
    schedule: (delayMs, callback, options) => clock.schedule(delayMs, callback, options),
  }
}

/** Work that takes real time, whatever a clock says: loading modules, or compressing on other threads. */
const externalWork = new Set<Promise<unknown>>()

/** Makes virtual clocks wait for the work before they advance. It must not wait for a clock itself. */
export function trackExternalWork<Result>(work: Promise<Result>): Promise<Result> {
  externalWork.add(work)
  const end = () => void externalWork.delete(work)
  work.then(end, end)
  return work
}

/** Resolves once all external work in progress has settled, to whether there was any. For virtual clocks. */
export async function awaitExternalWork(): Promise<boolean> {
  const works = [...externalWork]
  await Promise.allSettled(works)
  return works.length > 0
}
