import { SerialQueue } from '../../../src/runtime/serial-queue.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import { isFullError, type Medium, mediumFailure } from '../media/medium.ts'

/** Enough for some ten thousand trims, or for a roll that leaves little. */
const RESERVE_BYTES = 4 * 1_048_576

/**
 * The one place that knows what to do on a full disk. Space is set aside before anything is added. When the
 * disk is full, what adds data fails, and what frees space gives up the reserve: trims, deletions, rolls.
 * Nothing is added until the reserve could be allocated again.
 */
export class Space {
  readonly reserveBytes: number
  readonly #medium: Medium
  readonly #queue = new SerialQueue()
  #isReserved = false
  /** Whether allocating failed for a reason that freed space does not change. */
  #isUnavailable = false
  #isFull: boolean
  /** How many writes that free space are running. */
  #freeing = 0

  /** @param isFull Whether the disk is known to be full. */
  constructor(medium: Medium, isFull = false, reserveBytes = RESERVE_BYTES) {
    this.#medium = medium
    this.#isFull = isFull
    this.reserveBytes = reserveBytes
  }

  /** Whether a write failed for lack of space, and none that adds has succeeded since. */
  get isFull(): boolean {
    return this.#isFull
  }

  /**
   * Runs a write that has no effect if it fails for lack of space. Then it rejects with `quota`, after
   * another attempt with the reserve if it frees space.
   */
  async write<Result>(kind: 'adds' | 'frees', work: () => Promise<Result>): Promise<Result> {
    if (kind === 'adds' && !(await this.allocate())) {
      const message = `no space left for the reserve of ${this.reserveBytes} bytes; trim or delete streams`
      throw new StorageFailure('quota', message, { nothingWritten: true })
    }
    if (kind === 'frees') this.#freeing++
    try {
      const result = await work()
      if (kind === 'adds') this.#isFull = false
      return result
    } catch (error) {
      if (!isRepeatable(error)) throw error
      this.#isFull = true
      if (kind === 'adds' || !(await this.#release())) throw mediumFailure(error, true)
      return await work()
    } finally {
      if (kind === 'frees') this.#freeing--
    }
  }

  /** Allocates the reserve. Resolves to whether there is room for it. */
  allocate(): Promise<boolean> {
    if (this.#isReserved || this.#isUnavailable) return Promise.resolve(true)
    // The room is left to what frees more.
    if (this.#isFull && this.#freeing > 0) return Promise.resolve(false)
    return this.#queue.run(async () => {
      if (this.#isReserved || this.#isUnavailable) return true
      try {
        await this.#medium.reserve(this.reserveBytes)
        this.#isReserved = true
        this.#isFull = false
      } catch (error) {
        if (isFullError(error)) this.#isFull = true
        // Not a reason to refuse appends.
        else this.#isUnavailable = true
      }
      return this.#isReserved || this.#isUnavailable
    })
  }

  /** There may be room now. Without a reserve, that shows when it is allocated. */
  filesRemoved(): void {
    if (this.#isReserved || this.#isUnavailable) this.#isFull = false
  }

  /** Resolves when nothing is allocated or released. */
  idle(): Promise<void> {
    return this.#queue.run(async () => {})
  }

  #release(): Promise<boolean> {
    return this.#queue.run(async () => {
      this.#isReserved = false
      return this.#medium.release()
    })
  }
}

function isRepeatable(error: unknown): boolean {
  return isFullError(error) && (!StorageFailure.is(error) || error.nothingWritten)
}
