import { invalid } from '../../../src/model/errors.ts'
import { assertInteger, type MembersOf } from '../../../src/model/validation.ts'
import type { Clock } from '../../../src/runtime/clock.ts'
import { Prng } from '../../../src/runtime/random.ts'

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

interface Planned<Fault> extends FaultPoint<readonly unknown[]> {
  readonly operation: string
  readonly fault: Fault
  seen: number
}

const LOGGED_MAX = 10_000

/** The planned faults of some operations. Counts the calls of each, and logs what was injected. */
export class FaultPlan<Fault, Entry> {
  #planned: Planned<Fault>[] = []
  readonly #calls = new Map<string, number>()
  readonly #logged: Entry[] = []

  /** Throws `invalid` unless `nth` is a positive integer. */
  add(operation: string, fault: Fault, { nth, when }: FaultPoint<readonly unknown[]>): void {
    if (nth !== undefined && !(Number.isSafeInteger(nth) && nth >= 1)) {
      throw invalid(`nth must be a positive integer, not ${nth}`, 'nth')
    }
    this.#planned.push({ operation, fault, nth, when, seen: 0 })
  }

  /** Returns the number of this call, from 1, and its faults in the order of their planning. */
  next(operation: string, args: readonly unknown[]): { readonly call: number; readonly faults: Fault[] } {
    const call = (this.#calls.get(operation) ?? 0) + 1
    this.#calls.set(operation, call)
    const faults: Fault[] = []
    this.#planned = this.#planned.filter((planned) => {
      const { fault, nth, when } = planned
      if (planned.operation !== operation || when?.(...args) === false) return true
      planned.seen++
      if (nth === undefined || planned.seen === nth) faults.push(fault)
      return nth === undefined || planned.seen < nth
    })
    return { call, faults }
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
}

/** A planned delay of a call, or of its result. */
export interface PlannedDelay {
  readonly fault: 'delay'
  readonly delayMs: number
  readonly after: boolean
}

/** The delay of a call or, with `after`, that of its result, in milliseconds. */
export function delayMsOf(
  faults: readonly (PlannedDelay | { readonly fault: string })[],
  after: boolean,
): number {
  let sum = 0
  for (const fault of faults) if ('delayMs' in fault && fault.after === after) sum += fault.delayMs
  return sum
}

/** Returns the delays of a call, its fault, and the delays of its result, in their order. */
export function inTimeOrder<Fault extends { readonly fault: string }>(
  faults: readonly (Fault | PlannedDelay)[],
  fault: Fault | undefined,
): (Fault | PlannedDelay)[] {
  const delays = (after: boolean) => faults.filter((delay) => 'delayMs' in delay && delay.after === after)
  return [...delays(false), ...(fault === undefined ? [] : [fault]), ...delays(true)]
}

/** Delays calls by a clock, and can release them early. */
export class Holds {
  readonly #waiting = new Set<() => void>()
  #releases = 0

  /**
   * Returns a function that delays one call, and later its result, unless {@link release} is called
   * meanwhile.
   */
  begin(clock: Clock): Hold {
    const since = this.#releases
    return async (ms, signal) => {
      if (ms > 0 && since === this.#releases && !signal?.aborted) await this.#wait(clock, ms, signal)
    }
  }

  /** Releases all calls in flight, which are not delayed again. */
  release(): void {
    this.#releases++
    for (const release of [...this.#waiting]) release()
  }

  #wait(clock: Clock, ms: number, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve) => {
      const release = () => {
        cancel()
        signal?.removeEventListener('abort', release)
        this.#waiting.delete(release)
        resolve()
      }
      const cancel = clock.schedule(ms, release)
      signal?.addEventListener('abort', release, { once: true })
      this.#waiting.add(release)
    })
  }
}

/** Resolves after the time, when the signal aborts, or when all calls are released. */
export type Hold = (ms: number, signal?: AbortSignal) => Promise<void>

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
