import { HeadwaterError, invalid } from '../../src/model/errors.ts'
import { assertOptions, type MembersOf, millisecondsOf, unchecked } from '../../src/model/validation.ts'
import { awaitExternalWork, type Clock } from '../../src/runtime/clock.ts'
import { macrotask } from '../../src/runtime/macrotask.ts'
import { OrderedList } from '../../src/storage/ordered-list.ts'

/** Options of `virtualClock`. */
export interface VirtualClockOptions {
  /** The start time: a `Date` or milliseconds since the Unix epoch. 2025-01-01T00:00:00Z by default. */
  readonly now?: number | Date | undefined
}

/** A clock that advances only when a test advances it. */
export interface VirtualClock extends Clock {
  /**
   * Advances the time by milliseconds or by `'500ms'`, `'60s'`, `'2m'`, `'1h'`, `'7d'`. Due timers fire in
   * the order of their times, then of their creation, each with `now()` at its time. Between two timers, the
   * code that they woke runs, and timers that it schedules within the span fire too. Concurrent calls are
   * queued.
   *
   * Rejects with `invalid` for an invalid duration, with the error of a callback (the time stays there),
   * and with `Error` if timers re-arm without delay forever.
   */
  advance(duration: number | string): Promise<void>
  /**
   * Runs everything that waits for no timer: promises, several turns of the event loop, and work of headwater
   * outside the event loop, such as loading code, compression and encryption.
   */
  settle(): Promise<void>
  /** The number of armed timers. If it is not 0 after everything is closed, something leaks. */
  readonly pending: number
}

interface Timer {
  readonly dueMs: number
  readonly serial: number
  /** The length of the chain of timers without delay that led to this one. */
  readonly generation: number
  readonly callback: () => void
}

/** Enough for a storage that needs several turns for one transaction. */
const SETTLE_TURNS = 8
/** Code that compresses in an endless loop must not stop the clock. */
const SETTLE_ROUNDS_MAX = 100
const GENERATIONS_MAX = 10_000
const START_MS = Date.UTC(2025, 0, 1)

/**
 * Creates a {@link VirtualClock}. Throws `invalid` for an invalid start time.
 *
 * ```ts
 * const clock = virtualClock({ now: Date.UTC(2030, 0, 1) })
 * const hw = await open({ storage: memory(), clock })
 * await clock.advance('7d')
 * ```
 */
export function virtualClock(options: VirtualClockOptions = {}): VirtualClock {
  assertOptions(options, { now: unchecked } satisfies MembersOf<VirtualClockOptions>)
  const timers = new OrderedList<Timer>((a, b) => a.dueMs - b.dueMs || a.serial - b.serial)
  let nowMs = millisecondsOf(options.now ?? START_MS)
  if (!Number.isFinite(nowMs)) throw invalid(`invalid start time: ${options.now}`, 'now')
  let serial = 0
  /** The generation of the timer that fired last. */
  let generation = 0
  let advances = Promise.resolve()

  async function settle(): Promise<void> {
    for (let round = 0; round < SETTLE_ROUNDS_MAX; round++) {
      for (let turn = 0; turn < SETTLE_TURNS; turn++) await macrotask()
      if (!(await awaitExternalWork())) return
    }
  }

  async function fireUntil(endMs: number): Promise<void> {
    for (;;) {
      await settle()
      const timer = timers.first()
      if (timer === undefined || timer.dueMs > endMs) break
      if (timer.generation > GENERATIONS_MAX) {
        const fired = `${GENERATIONS_MAX} fired in succession at ${nowMs}`
        throw new HeadwaterError('other', `timers re-arm without delay: ${fired}`)
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
    isVirtual: true,

    now: () => nowMs,

    schedule(delayMs, callback) {
      if (Number.isNaN(delayMs)) throw invalid('invalid delay: NaN', 'delayMs')
      const dueMs = nowMs + Math.max(delayMs, 0)
      const timer = { dueMs, serial: serial++, generation: dueMs > nowMs ? 0 : generation + 1, callback }
      timers.add(timer)
      return () => void timers.delete(timer)
    },

    async advance(duration) {
      const spanMs = millisecondsIn(duration)
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

const UNIT_MS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const

/** Limits the text of an error. */
const SHOWN_CHARACTERS_MAX = 100

/**
 * Parses `'500ms'`, `'60s'`, `'2m'`, `'1h'`, `'7d'` (decimals allowed) or a number of milliseconds. Throws
 * `invalid`.
 */
export function millisecondsIn(duration: number | string): number {
  const ms = typeof duration === 'number' ? duration : parse(duration)
  if (!(ms >= 0 && ms <= Number.MAX_SAFE_INTEGER)) {
    throw invalid(`invalid duration: ${String(duration).slice(0, SHOWN_CHARACTERS_MAX)}`, 'duration')
  }
  return ms
}

function parse(text: string): number {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text)
  return match === null ? Number.NaN : Number(match[1]) * UNIT_MS[match[2] as keyof typeof UNIT_MS]
}
