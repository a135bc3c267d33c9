import { unwrap } from 'idb'
import { type DatabaseConnection, RESERVE } from './connection.ts'
import { abortReason, isQuotaFailure } from './failures.ts'

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
  /** Whether it was released, or could not be allocated. */
  #isSpent = false

  constructor(connection: DatabaseConnection) {
    this.#connection = connection
  }

  /** Allocates it if it is known to be missing. Resolves to whether it exists, as far as is known. */
  async isThere(): Promise<boolean> {
    return !this.#isSpent || this.allocate()
  }

  /** Allocates it if it is missing. Resolves to false if there is no space. */
  async allocate(): Promise<boolean> {
    try {
      await this.#set(true)
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
      if (!(await this.#set(false))) throw error
      return work()
    }
  }

  /** Allocates or releases it. Resolves to whether there was one. */
  #set(isWanted: boolean): Promise<boolean> {
    return this.#connection.write((db) => {
      const transaction = unwrap(db).transaction('reserve', 'readwrite', { durability: 'relaxed' })
      return new Promise((resolve, reject) => {
        const store = transaction.objectStore('reserve')
        const count = store.count(RESERVE)
        const exists = () => count.result > 0
        count.onsuccess = () => {
          if (isWanted && !exists()) store.put(randomBytes(RESERVE_BYTES), RESERVE)
          if (!isWanted && exists()) store.delete(RESERVE)
        }
        transaction.oncomplete = () => resolve(exists())
        transaction.onabort = () => reject(abortReason(transaction))
      })
    })
  }
}

/** Random bytes do not compress, so they occupy their full size. */
function randomBytes(length: number): Uint8Array {
  const bytes = new Uint8Array(length)
  for (let start = 0; start < length; start += RANDOM_BYTES_MAX) {
    crypto.getRandomValues(bytes.subarray(start, start + RANDOM_BYTES_MAX))
  }
  return bytes
}
