import { codeArrived } from '../../src/engine/late.ts'
import { macrotask } from '../../src/engine/macrotask.ts'
import type { Clock } from '../../src/storage/clock.ts'
import { OrderedList } from '../../src/storage/ordered-list.ts'
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
  /** Lets everything run that waits for no timer: promises, several turns of the event loop, and code of headwater that is being loaded. */
  settle(): Promise<void>
  /** How many timers are armed. 0 once everything is closed, or something leaks. */
  readonly pending: number
}

interface Timer {
  readonly dueMs: number
  readonly serial: number
  readonly callback: () => void
}

/** Enough for a storage that needs some turns for one transaction. */
const SETTLE_TURNS = 8
const CALLBACKS_AT_ONE_TIME_MAX = 10_000
const START_MS = Date.UTC(2025, 0, 1)

/** A {@link Clock} for tests, see {@link VirtualClock}. */
export function virtualClock(options: VirtualClockOptions = {}): VirtualClock {
  const timers = new OrderedList<Timer>((a, b) => a.dueMs - b.dueMs || a.serial - b.serial)
  let nowMs = Number(options.now ?? START_MS)
  let serial = 0
  let advances = Promise.resolve()

  async function settle(): Promise<void> {
    do {
      for (let turn = 0; turn < SETTLE_TURNS; turn++) await macrotask()
    } while (await codeArrived())
  }

  async function fireUntil(endMs: number): Promise<void> {
    let atOneTime = 0
    for (;;) {
      await settle()
      const timer = timers.first()
      if (timer === undefined || timer.dueMs > endMs) break
      atOneTime = timer.dueMs > nowMs ? 1 : atOneTime + 1
      if (atOneTime > CALLBACKS_AT_ONE_TIME_MAX) {
        throw new Error(
          `timers re-arm themselves without delay: ${CALLBACKS_AT_ONE_TIME_MAX} fired at ${nowMs}`,
        )
      }
      timers.delete(timer)
      nowMs = timer.dueMs
      timer.callback()
    }
    nowMs = endMs
  }

  return {
    now: () => nowMs,

    schedule(delayMs, callback) {
      if (Number.isNaN(delayMs)) throw new RangeError('not a delay: NaN')
      const timer: Timer = { dueMs: nowMs + Math.max(delayMs, 0), serial: serial++, callback }
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
