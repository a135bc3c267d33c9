/** A call on memory takes a few microseconds, one that waits for an SSD about a hundred. In milliseconds. */
const SLOW_MS = 0.25
/** How many calls are asynchronous after a slow one, at first and at most. */
const SKIPPED_MIN = 16
const SKIPPED_MAX = 4_096

/**
 * Decides which short reads or writes are synchronous. When the operating system has the file in memory, as
 * usual, that takes a fifth of the time of a call in another thread. After a call that waited for the disk,
 * the next ones are asynchronous, twice as many after each further one, so that a slow disk hardly delays the
 * event loop.
 */
export class ShortCalls {
  readonly #now: () => number
  #skipped = SKIPPED_MIN
  /** How many of the next calls are asynchronous. */
  #left = 0

  /** @param now A monotonic clock, in milliseconds. */
  constructor(now: () => number) {
    this.#now = now
  }

  /** Returns the number of bytes of a synchronous call; 0, without calling, if it should be asynchronous. */
  attempt(call: () => number): number {
    if (this.#left > 0) {
      this.#left--
      return 0
    }
    const start = this.#now()
    const count = call()
    const isSlow = this.#now() - start > SLOW_MS
    this.#left = isSlow ? this.#skipped : 0
    this.#skipped = isSlow ? Math.min(2 * this.#skipped, SKIPPED_MAX) : SKIPPED_MIN
    return count
  }
}
