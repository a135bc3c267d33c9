import { randomBytes } from 'node:crypto'
import { SerialQueue } from '../../../../src/runtime/serial-queue.ts'
import { isFullError } from './errors.ts'
import type { Files } from './files.ts'

/** The name of the file that occupies the reserved space. */
export const RESERVE_NAME = 'reserve'

/** Enough for some ten thousand trims, or for a roll that leaves little. */
const RESERVE_BYTES = 4 * 1_048_576
const PIECE_BYTES = 1_048_576

/**
 * Space that is set aside. Trims, deletions and the removal of files write a little, so without any space
 * left none would work. They may then use the reserve; no other call is written until it has been allocated
 * again.
 */
export class Reserve {
  readonly bytes: number
  readonly #files: Files
  readonly #queue = new SerialQueue()
  #isAllocated: boolean
  #isFull: boolean
  /** Length of the last write that failed. */
  #failedBytes = 1
  /** Whether allocating failed for a reason that freed space does not change. */
  #isUnavailable = false

  private constructor(files: Files, bytes: number, isAllocated: boolean, isFull: boolean) {
    this.#files = files
    this.bytes = bytes
    this.#isAllocated = isAllocated
    this.#isFull = isFull
  }

  /**
   * Finds the reserve of an earlier opening; allocates nothing.
   *
   * @param isFull Whether the disk is known to be full.
   */
  static async open(files: Files, isFull: boolean, bytes: number = RESERVE_BYTES): Promise<Reserve> {
    // A crash may have left a part of it.
    return new Reserve(files, bytes, (await sizeOf(files)) >= bytes, isFull)
  }

  /** Whether a write failed for lack of space, and none as large has succeeded since. */
  get isFull(): boolean {
    return this.#isFull
  }

  /** Notes that a write failed for lack of space. */
  markFull(bytes = this.#isFull ? this.#failedBytes : 1): void {
    this.#isFull = true
    this.#failedBytes = bytes
  }

  /** Notes that a write without the reserve succeeded, or that there may be room for one. */
  markWritable(bytes = Number.POSITIVE_INFINITY): void {
    if (!this.isMissing && bytes >= this.#failedBytes) this.#isFull = false
  }

  /** Whether {@link allocate} would write. */
  get isMissing(): boolean {
    return !this.#isAllocated && !this.#isUnavailable
  }

  /** Allocates the reserve if it is missing. Resolves to whether there was room for it. */
  allocate(): Promise<boolean> {
    return this.#queue.run(async () => {
      if (!this.isMissing) return true
      try {
        await this.#write()
        this.#isAllocated = true
        this.#isFull = false
        return true
      } catch (error) {
        await this.#files.unlink(RESERVE_NAME).catch(() => {})
        if (isFullError(error)) this.markFull()
        else this.#isUnavailable = true
        return this.#isUnavailable
      }
    })
  }

  /** Resolves when nothing is allocated or released. */
  idle(): Promise<void> {
    return this.#queue.run(async () => {})
  }

  /** Runs work that frees space. If the disk is full, releases the reserve and runs it again. */
  async use<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await work()
    } catch (error) {
      if (!isFullError(error)) throw error
      this.markFull()
      if (!(await this.release())) throw error
      return work()
    }
  }

  /** Resolves to whether there was a reserve. */
  release(): Promise<boolean> {
    return this.#queue.run(async () => {
      if (!this.#isAllocated) return false
      this.#isAllocated = false
      return releaseReserve(this.#files)
    })
  }

  /** Random bytes occupy their full size on file systems that compress. */
  async #write(): Promise<void> {
    const file = await this.#files.open(RESERVE_NAME, 'create')
    try {
      for (let offset = 0; offset < this.bytes; offset += PIECE_BYTES) {
        await file.write(randomBytes(Math.min(PIECE_BYTES, this.bytes - offset)), offset)
      }
      await file.datasync()
    } finally {
      await file.close()
    }
  }
}

/** Removes the reserve. Resolves to whether there was one. */
export async function releaseReserve(files: Files): Promise<boolean> {
  try {
    await files.unlink(RESERVE_NAME)
    // Some file systems do not use freed space before it is certain that it is free.
    await files.syncDirectory()
    return true
  } catch {
    return false
  }
}

async function sizeOf(files: Files): Promise<number> {
  const file = await files.open(RESERVE_NAME, 'read').catch(() => undefined)
  if (file === undefined) return 0
  try {
    return await file.size()
  } finally {
    await file.close()
  }
}
