import { randomBytes } from 'node:crypto'
import { SerialQueue } from '../../../src/runtime/queues.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import { isFullError, type Medium, mediumFailure } from '../media/medium.ts'

/** The file that occupies the reserved space. */
export const RESERVE_NAME = 'reserve'
const WRITE_BYTES = 512 * 1024

/** Whether a write is made even if the disk is full, because it frees space or changes little. */
export type WriteKind = 'adds' | 'frees'

/**
 * The one place that knows what to do on a full disk. Space is set aside before anything is added. When the
 * disk is full, what adds data fails, and what frees space gives up the reserve: trims, deletions, rolls.
 * Nothing is added until the reserve could be allocated again.
 */
export class Space {
  readonly reserveBytes: number
  readonly #medium: Medium
  readonly #queue = new SerialQueue()
  /** Whether the reserve is there, or no reason to refuse what adds. */
  #isReserved: boolean
  #isFull = false
  /** How many writes that free space are running. */
  #freeing = 0

  /**
   * @param reserveBytes 0 for a medium that is never full.
   * @param isReserved Whether the reserve is there.
   */
  constructor(medium: Medium, reserveBytes: number, isReserved: boolean) {
    this.#medium = medium
    this.reserveBytes = reserveBytes
    this.#isReserved = isReserved || reserveBytes === 0
  }

  /** Whether a write failed for lack of space, and none that adds has succeeded since. */
  get isFull(): boolean {
    return this.#isFull
  }

  /**
   * Runs a write that has no effect if it fails for lack of space. Then it rejects with `quota`, after
   * another attempt with the reserve if it frees space.
   */
  async write<Result>(kind: WriteKind, work: () => Promise<Result>): Promise<Result> {
    if (kind === 'adds' && !(await this.#allocate())) {
      const message = `no space left for the reserve of ${this.reserveBytes} bytes; trim or delete streams`
      throw new StorageFailure('quota', message, { nothingWritten: true })
    }
    if (kind === 'frees') this.#freeing++
    try {
      const result = await work()
      if (kind === 'adds' && this.#isReserved) this.#isFull = false
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

  /** Looks whether there is room again, after something may have been freed. */
  async makeRoom(hasRemovedFiles: boolean): Promise<void> {
    if (!this.#isFull) return
    const hasRoom = this.#isReserved ? hasRemovedFiles : await this.#allocate()
    if (hasRoom) this.#isFull = false
  }

  /** Allocates the reserve. Resolves to whether there is room for it. */
  async #allocate(): Promise<boolean> {
    if (this.#isReserved) return true
    // The room is left to what frees more.
    if (this.#isFull && this.#freeing > 0) return false
    return this.#queue.run(async () => {
      try {
        if (!this.#isReserved) await this.#fill()
        this.#isReserved = true
      } catch (error) {
        this.#isFull ||= isFullError(error)
        // Another failure is no reason to refuse appends.
        this.#isReserved = !isFullError(error)
      }
      return this.#isReserved
    })
  }

  async #fill(): Promise<void> {
    const file = await this.#medium.create(RESERVE_NAME)
    try {
      for (let left = this.reserveBytes; left > 0; left -= WRITE_BYTES) {
        // Random, because some file systems compress.
        await file.write(randomBytes(Math.min(WRITE_BYTES, left)))
      }
      await file.finish()
    } catch (error) {
      await file.abandon()
      throw error
    }
  }

  /** Gives up the reserve. Resolves to whether there was one. */
  #release(): Promise<boolean> {
    return this.#queue.run(async () => {
      if (this.reserveBytes === 0) return false
      this.#isReserved = false
      return this.#medium.remove(RESERVE_NAME).then(
        () => true,
        () => false,
      )
    })
  }
}

function isRepeatable(error: unknown): boolean {
  return isFullError(error) && (!StorageFailure.is(error) || error.nothingWritten)
}
