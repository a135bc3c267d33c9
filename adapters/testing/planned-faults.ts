import { invalid } from '../../src/model/errors.ts'
import { assertInteger, type MembersOf } from '../../src/model/validation.ts'
import { onAnyAbort, SharedSignal } from '../../src/runtime/abort.ts'
import type { Clock } from '../../src/runtime/clock.ts'
import { Prng } from '../../src/runtime/random.ts'

/** Selects the calls that a fault affects. All from now on by default, until `heal()`. */
export interface FaultPoint<Args extends readonly unknown[]> {
  /**
   * The number of the call that fails, from now on; 1 is the next. With `when`, only matching calls count.
   */
  readonly nth?: number | undefined
  /** Selects the calls that may fail: receives the arguments of a call and returns whether it matches. */
  readonly when?: ((...args: Args) => boolean) | undefined
}

/** The members of {@link FaultPoint}. */
export const FAULT_POINT: MembersOf<FaultPoint<[]>> = { nth: 'number', when: 'function' }

/** A planned delay of a call or, with `after`, of its result. */
export interface PlannedDelay {
  readonly fault: 'delay'
  readonly delayMs: number
  readonly after: boolean
}

interface Planned<Fault> extends FaultPoint<readonly unknown[]> {
  readonly operation: string
  readonly fault: Fault | PlannedDelay
  seen: number
}

/** The faults of one call: at most one, the first that was planned, and every delay. */
interface Injection<Fault> {
  /** The number of the call, from 1. */
  readonly call: number
  readonly fault: Fault | undefined
  /** The delay of the call, in milliseconds. */
  readonly delayMs: number
  /** The delay of its result, in milliseconds. */
  readonly resultDelayMs: number
}

const LOGGED_MAX = 10_000

/** The planned faults of some operations. Counts the calls of each, and logs what was injected. */
export class FaultPlan<Fault extends object, Entry> {
  #planned: Planned<Fault>[] = []
  readonly #calls = new Map<string, number>()
  readonly #logged: Entry[] = []

  /** Throws `invalid` unless `nth` is a positive integer. */
  add<Args extends readonly unknown[]>(
    operation: string,
    fault: Fault | PlannedDelay,
    { nth, when }: FaultPoint<Args>,
  ): void {
    if (nth !== undefined && !(Number.isSafeInteger(nth) && nth >= 1)) {
      throw invalid(`nth must be a positive integer, not ${nth}`, 'nth')
    }
    const matches = when as Planned<Fault>['when']
    this.#planned.push({ operation, fault, nth, when: matches, seen: 0 })
  }

  /** Returns what happens to this call. Logs it, with the given members. */
  next(operation: string, args: readonly unknown[], described: object): Injection<Fault> {
    const call = (this.#calls.get(operation) ?? 0) + 1
    this.#calls.set(operation, call)
    let injected: Fault | undefined
    let delayMs = 0
    let resultDelayMs = 0
    for (const fault of this.#selected(operation, args)) {
      if ('delayMs' in fault) {
        if (fault.after) resultDelayMs += fault.delayMs
        else delayMs += fault.delayMs
      } else if (injected === undefined) injected = fault
      else continue
      this.log({ ...described, call, ...fault } as Entry)
    }
    return { call, fault: injected, delayMs, resultDelayMs }
  }

  heal(): void {
    this.#planned = []
  }

  /** Adds an injected fault to the log. */
  log(entry: Entry): void {
    this.#logged.push(entry)
    // In large steps: removing one entry at a time would be slow.
    if (this.#logged.length >= 2 * LOGGED_MAX) this.#logged.splice(0, LOGGED_MAX)
  }

  /** The latest 10,000 injected faults. */
  get logged(): readonly Entry[] {
    return this.#logged.slice(-LOGGED_MAX)
  }

  /** Returns the faults of the next call, in the order of their planning. */
  #selected(operation: string, args: readonly unknown[]): (Fault | PlannedDelay)[] {
    const selected: (Fault | PlannedDelay)[] = []
    this.#planned = this.#planned.filter((planned) => {
      const { fault, nth, when } = planned
      if (planned.operation !== operation || when?.(...args) === false) return true
      planned.seen++
      if (nth === undefined || planned.seen === nth) selected.push(fault)
      return nth === undefined || planned.seen < nth
    })
    return selected
  }
}

/** Delays calls by a clock, and can release them early. */
export class Holds {
  #released = new SharedSignal()

  /**
   * Returns a function that delays one call, and later its result, unless {@link release} is called
   * meanwhile.
   */
  begin(clock: Clock): (ms: number, signal?: AbortSignal) => Promise<void> {
    const released = this.#released
    return (ms, signal) =>
      new Promise((resolve) => {
        if (ms === 0 || released.aborted || signal?.aborted) return resolve()
        const cancel = clock.schedule(ms, () => {
          ignoreSignals()
          resolve()
        })
        const ignoreSignals = onAnyAbort([released, signal], () => {
          cancel()
          resolve()
        })
      })
  }

  /** Releases all calls in flight, which are not delayed again. */
  release(): void {
    this.#released.abort(undefined)
    this.#released = new SharedSignal()
  }
}

/**
 * A source of random numbers from 0 to below 1 that are the same for the same seed, for faults by chance and
 * for the option `random` of `open`. Throws `invalid` unless the seed is an integer from 0.
 *
 * ```ts
 * const random = seededRandom(7)
 * faultyStorage(storage).fail('append', { when: () => random() < 0.1 })
 * ```
 */
export function seededRandom(seed: number): () => number {
  assertInteger(seed, 'seed')
  const prng = new Prng(seed)
  return () => prng.next()
}
