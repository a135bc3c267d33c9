import { StorageFailure } from '../../../src/storage/errors.ts'
import { type DatabaseConnection, write } from './connection.ts'
import { RESERVE } from './schema.ts'

/**
 * Large enough for many trims, and for Chromium to store it in a file, whose space is free once it is
 * deleted.
 */
const RESERVE_BYTES = 128 * 1024

/** The most that `crypto.getRandomValues` returns per call. */
const RANDOM_BYTES_MAX = 65_536

/**
 * Space that is set aside. Trimming and reclaiming write a little, so without any space left neither would
 * work. They may then use the reserve; nothing else is written until it has been allocated again.
 */
export class SpaceReserve {
  readonly #connection: DatabaseConnection
  #isSpent = false

  constructor(connection: DatabaseConnection) {
    this.#connection = connection
  }

  /** Whether the reserve was released, or could not be allocated. */
  get isSpent(): boolean {
    return this.#isSpent
  }

  /** Allocates the reserve if it is missing. Resolves to whether it exists, as far as is known. */
  async restore(): Promise<boolean> {
    try {
      await setReserve(this.#connection, true)
      this.#isSpent = false
    } catch (error) {
      if (isQuotaFailure(error)) this.#isSpent = true
    }
    return !this.#isSpent
  }

  /** Runs work that frees space. If it hits the quota, releases the reserve and runs it again. */
  async use<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await work()
    } catch (error) {
      if (!isQuotaFailure(error)) throw error
      this.#isSpent = true
      if (!(await setReserve(this.#connection, false))) throw error
      return work()
    }
  }
}

/** Whether the error means that the quota was hit and nothing was written. */
export function isQuotaFailure(error: unknown): boolean {
  return StorageFailure.is(error) && error.kind === 'quota' && error.nothingWritten
}

/** Allocates or releases the reserve. Resolves to whether there was one. */
function setReserve(connection: DatabaseConnection, isWanted: boolean): Promise<boolean> {
  return connection.run((db) =>
    write(db, ['reserve'], 'relaxed', async (transaction) => {
      const store = transaction.objectStore('reserve')
      const exists = (await store.getKey(RESERVE)) !== undefined
      if (isWanted && !exists) await store.put(randomBytes(RESERVE_BYTES), RESERVE)
      if (!isWanted && exists) await store.delete(RESERVE)
      return exists
    }),
  )
}

/** Random bytes do not compress, so they occupy their full size. */
function randomBytes(length: number): Uint8Array {
  const bytes = new Uint8Array(length)
  for (let start = 0; start < length; start += RANDOM_BYTES_MAX) {
    crypto.getRandomValues(bytes.subarray(start, start + RANDOM_BYTES_MAX))
  }
  return bytes
}
