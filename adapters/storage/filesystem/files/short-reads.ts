/** A read of memory takes a few microseconds, one of an SSD about a hundred. In milliseconds. */
const SLOW_MS = 0.25
/** How many reads are asynchronous after a slow one, at first and at most. */
const SKIPPED_MIN = 16
const SKIPPED_MAX = 4_096

/**
 * Decides which short reads are synchronous. When the operating system has the file in memory, as usual, that
 * takes a fifth of the time of a read in another thread. After a read that waited for the disk, the next ones
 * are asynchronous, twice as many after each further one, so that a slow disk hardly delays the event loop.
 */
export class ShortReads {
  readonly #now: () => number
  #skipped = SKIPPED_MIN
  /** How many of the next reads are asynchronous. */
  #left = 0

  /** @param now A monotonic clock, in milliseconds. */
  constructor(now: () => number) {
    this.#now = now
  }

  /** Returns the number of bytes of a synchronous read; 0, without reading, if it should be asynchronous. */
  attempt(read: () => number): number {
    if (this.#left > 0) {
      this.#left--
      return 0
    }
    const start = this.#now()
    const count = read()
    const isSlow = this.#now() - start > SLOW_MS
    this.#left = isSlow ? this.#skipped : 0
    this.#skipped = isSlow ? Math.min(2 * this.#skipped, SKIPPED_MAX) : SKIPPED_MIN
    return count
  }
}
