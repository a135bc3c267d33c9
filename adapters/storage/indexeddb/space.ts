import { Observable, type Subscriber } from 'rxjs'

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
