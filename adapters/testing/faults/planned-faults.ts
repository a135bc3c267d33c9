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

interface Planned<Args extends readonly unknown[], Fault> extends FaultPoint<Args> {
  readonly fault: Fault
  seen: number
}

/** The planned faults of one kind of call. */
export class FaultPoints<Args extends readonly unknown[], Fault> {
  #planned: Planned<Args, Fault>[] = []

  /** Throws `invalid` unless `nth` is a positive integer. */
  add(fault: Fault, { nth, when }: FaultPoint<Args>): void {
    if (nth !== undefined && !(Number.isSafeInteger(nth) && nth >= 1)) {
      throw invalid(`nth must be a positive integer, not ${nth}`, 'nth')
    }
    this.#planned.push({ fault, seen: 0, ...(nth && { nth }), ...(when && { when }) })
  }

  /** Returns the faults of this call in the order of their planning. */
  matching(...args: Args): Fault[] {
    const due: Fault[] = []
    this.#planned = this.#planned.filter((planned) => {
      const { fault, nth, when } = planned
      if (when?.(...args) === false) return true
      planned.seen++
      if (nth === undefined || planned.seen === nth) due.push(fault)
      return nth === undefined || planned.seen < nth
    })
    return due
  }

  clear(): void {
    this.#planned = []
  }
}

const ENTRIES_MAX = 10_000

/** The latest 10,000 injected faults. */
export class FaultLog<Fault> {
  readonly #entries: Fault[] = []

  get entries(): readonly Fault[] {
    return this.#entries.slice(-ENTRIES_MAX)
  }

  add(fault: Fault): void {
    this.#entries.push(fault)
    // In large steps: removing one entry at a time would be slow.
    if (this.#entries.length >= 2 * ENTRIES_MAX) this.#entries.splice(0, ENTRIES_MAX)
  }
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
