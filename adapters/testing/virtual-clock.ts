import { macrotask } from '../../src/engine/macrotask.ts'
import type { Clock } from '../../src/storage/clock.ts'
import { OrderedList } from '../../src/storage/ordered-list.ts'
import { unclockedWorkEnded } from '../../src/storage/unclocked.ts'
import { durationMs } from './duration.ts'

export interface VirtualClockOptions {
  /** Where the time starts: milliseconds since the Unix epoch, or a date. Default: 2025-01-01T00:00:00Z. */
  readonly now?: number | Date
}

/** A clock that stands still until a test moves it. */
export interface VirtualClock extends Clock {
  /**
   * Moves the time on by milliseconds or by `'500ms'`, `'60s'`, `'2m'`, `'1h'`, `'7d'`. Timers that become due fire in the
   * order of their times, those of the same time in the order in which they were made, each with `now()` at its time;
   * in between, the code that they woke runs, and what it schedules within the span fires too. Calls made meanwhile
   * queue up.
   *
   * Rejects with `RangeError` when the duration is none, with what a callback threw (the time stays there), and with
   * `Error` when timers re-arm themselves without delay for ever.
   */
  advance(duration: number | string): Promise<void>
  /**
   * Lets everything run that waits for no timer: promises, several turns of the event loop, and what headwater leaves to others, such as code that is being loaded, and threads that
   * compress or encrypt.
   */
  settle(): Promise<void>
  /** How many timers are armed. 0 once everything is closed, or something leaks. */
  readonly pending: number
}

interface Timer {
  readonly dueMs: number
  readonly serial: number
  /** How many timers without delay, each made after the one before had fired, led to this one. */
  readonly generation: number
  readonly callback: () => void
}

/** Enough for a storage that needs some turns for one transaction. */
const SETTLE_TURNS = 8
/** Code that compresses again and again, without an end, must not keep the time from going on. */
const UNCLOCKED_ROUNDS_MAX = 100
const GENERATIONS_MAX = 10_000
const START_MS = Date.UTC(2025, 0, 1)

/** A {@link Clock} for tests, see {@link VirtualClock}. Throws `RangeError` for a time to start at that is none. */
export function virtualClock(options: VirtualClockOptions = {}): VirtualClock {
  const timers = new OrderedList<Timer>((a, b) => a.dueMs - b.dueMs || a.serial - b.serial)
  let nowMs = Number(options.now ?? START_MS)
  if (!Number.isFinite(nowMs)) throw new RangeError(`not a time: ${options.now}`)
  let serial = 0
  /** Of the timer that fired last. */
  let generation = 0
  let advances = Promise.resolve()

  async function settle(): Promise<void> {
    for (let round = 0; round < UNCLOCKED_ROUNDS_MAX; round++) {
      for (let turn = 0; turn < SETTLE_TURNS; turn++) await macrotask()
      if (!(await unclockedWorkEnded())) return
    }
  }

  async function fireUntil(endMs: number): Promise<void> {
    for (;;) {
      await settle()
      const timer = timers.first()
      if (timer === undefined || timer.dueMs > endMs) break
      if (timer.generation > GENERATIONS_MAX) {
        throw new Error(
          `timers re-arm themselves without delay: ${GENERATIONS_MAX} fired one after the other at ${nowMs}`,
        )
      }
      timers.delete(timer)
      nowMs = timer.dueMs
      generation = timer.generation
      timer.callback()
    }
    nowMs = endMs
    generation = 0
  }

  return {
    now: () => nowMs,

    schedule(delayMs, callback) {
      if (Number.isNaN(delayMs)) throw new RangeError('not a delay: NaN')
      const dueMs = nowMs + Math.max(delayMs, 0)
      const timer = { dueMs, serial: serial++, generation: dueMs > nowMs ? 0 : generation + 1, callback }
      timers.add(timer)
      return () => void timers.delete(timer)
    },

    async advance(duration) {
      const spanMs = durationMs(duration)
      const advance = advances.then(() => fireUntil(nowMs + spanMs))
      advances = advance.catch(() => {})
      return advance
    },

    settle,

    get pending() {
      return timers.size
    },
  }
}
