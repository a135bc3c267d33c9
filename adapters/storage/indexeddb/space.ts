import { Observable, type Subscriber } from 'rxjs'
import { StorageFailure } from '../../../src/storage/errors.ts'
import { type DatabaseConnection, write } from './connection.ts'
import { RESERVE } from './schema.ts'

/** The browser's report on the storage space of this origin: this database, others, caches and files. */
export interface StorageUsage {
  /**
   * An estimate in bytes; freed space counts until the browser compacts. Undefined where the browser does not
   * report it.
   */
  readonly usedBytes: number | undefined
  /**
   * The quota in bytes; undefined where the browser does not report it. Chromium hides the true quota and
   * reports 10 GiB more than is used, or the size of the disk if that is less.
   */
  readonly quotaBytes: number | undefined
  /** Whether the browser keeps the data under storage pressure, and asks the user before deleting it. */
  readonly persisted: boolean | undefined
}

/** The usage when space is low. */
export interface LowSpace extends StorageUsage {
  /** An append was rejected for lack of space: `usedBytes` is the effective quota. */
  readonly isFull: boolean
  /** The bytes appended through this storage object since it was created. */
  readonly writtenBytes: number
}

export async function measureUsage(): Promise<StorageUsage> {
  const manager = storageManager()
  const [estimate, persisted] = await Promise.all([
    undefinedIfRejected(() => manager?.estimate?.()),
    undefinedIfRejected(() => manager?.persisted?.()),
  ])
  return { usedBytes: estimate?.usage, quotaBytes: estimate?.quota, persisted }
}

/** Asks the browser to keep the data. Resolves to whether it will; false where it cannot, as in workers. */
export async function persist(): Promise<boolean> {
  return (await undefinedIfRejected(() => storageManager()?.persist?.())) ?? false
}

function storageManager(): Partial<StorageManager> | undefined {
  return globalThis.navigator?.storage
}

/** Some pages, such as sandboxed frames, must not query the storage manager. */
async function undefinedIfRejected<Answer>(query: () => Promise<Answer> | undefined) {
  try {
    return await query()
  } catch {
    return undefined
  }
}

/** Bounds of the bytes written between two measurements. */
const STEP_BYTES_MIN = 256 * 1024
const STEP_BYTES_MAX = 16 * 1024 * 1024

/**
 * Warns before the quota is hit. Measures when a listener subscribes, and then each time that a quarter of
 * the remaining space has been written. Uses no timers, and does nothing without listeners.
 */
export class SpaceMonitor {
  /**
   * Emits the usage each time that a measurement finds space low, and when an append was rejected for lack of
   * space.
   */
  readonly low$: Observable<LowSpace>
  readonly #lowShare: number
  readonly #listeners = new Set<Subscriber<LowSpace>>()
  #writtenBytes = 0
  #writtenBytesMeasured = 0
  #stepBytes = STEP_BYTES_MIN
  #isMeasuring = false
  /** An append was rejected since the last measurement. */
  #isFull = false

  constructor(lowShare: number) {
    this.#lowShare = lowShare
    this.low$ = new Observable((subscriber) => {
      this.#listeners.add(subscriber)
      void this.#measure()
      return () => this.#listeners.delete(subscriber)
    })
  }

  recordWritten(bytes: number): void {
    this.#writtenBytes += bytes
    if (this.#writtenBytes - this.#writtenBytesMeasured >= this.#stepBytes) void this.#measure()
  }

  recordFull(): void {
    this.#isFull = true
    void this.#measure()
  }

  async #measure(): Promise<void> {
    if (this.#listeners.size === 0 || this.#isMeasuring) return
    this.#isMeasuring = true
    const writtenBytes = this.#writtenBytes
    this.#writtenBytesMeasured = writtenBytes
    const usage = await measureUsage()
    this.#isMeasuring = false
    const isFull = this.#isFull
    this.#isFull = false
    const { usedBytes = 0, quotaBytes = 0 } = usage
    const leftBytes = quotaBytes * this.#lowShare - usedBytes
    this.#stepBytes = Math.min(Math.max(leftBytes / 4, STEP_BYTES_MIN), STEP_BYTES_MAX)
    const isLow = quotaBytes > 0 && usedBytes / quotaBytes >= this.#lowShare
    if (!isFull && !isLow) return
    for (const listener of this.#listeners) listener.next({ ...usage, isFull, writtenBytes })
  }
}

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
