import { alignDown, MINUTE_SECONDS } from '../core/usage/resolutions.ts'
import type { UsageConnection } from '../engine/usage.ts'

const MINUTE_MS = MINUTE_SECONDS * 1000

/** Recognises append operations: all appends over one connection to one log in one minute are one. */
export class AppendOperations {
  #minute = -1
  #connections = new Map<string, WeakSet<UsageConnection>>()

  /** Whether an append begins an operation. `minute` is in seconds. */
  begins(logId: string, connection: UsageConnection, minute: number): boolean {
    if (minute !== this.#minute) this.#connections = new Map()
    this.#minute = minute
    const known = this.#connections.get(logId) ?? new WeakSet()
    this.#connections.set(logId, known)
    if (known.has(connection)) return false
    known.add(connection)
    return true
  }
}

/**
 * The largest gap between two checks of an open read, which happen every minute. A larger or negative one
 * means that the clock was set or the machine slept, and nothing was read meanwhile.
 */
const GAP_MS_MAX = 10 * MINUTE_MS

interface OpenRead {
  readonly basin: string
  /** The time at which the next operation is due, in milliseconds. */
  dueAt: number
  /** The time of the last check, in milliseconds. */
  checkedAt: number
}

/**
 * The open streaming reads. Each is an operation when it opens and another one for each further full minute
 * (docs/protocol.md "Metrics responses"). Operations are counted on demand, which saves a timer for each
 * read.
 */
export class OpenReads {
  readonly #open = new Set<OpenRead>()
  readonly #count: (basin: string, minute: number) => void

  /** `count` receives the basin and the minute, in seconds, of each operation. */
  constructor(count: (basin: string, minute: number) => void) {
    this.#count = count
  }

  /** Adds a read. The returned function ends it; a second call does nothing. Times are in milliseconds. */
  begin(basin: string, now: number): (now: number) => void {
    const read: OpenRead = { basin, dueAt: now, checkedAt: now }
    this.#countDue(read, now)
    this.#open.add(read)
    return (endedAt) => {
      if (this.#open.delete(read)) this.#countDue(read, endedAt)
    }
  }

  /** Counts the operations that are due. To be called every minute. */
  count(now: number): void {
    for (const read of this.#open) this.#countDue(read, now)
  }

  #countDue(read: OpenRead, now: number): void {
    const gap = now - read.checkedAt
    if (Math.abs(gap) > GAP_MS_MAX) read.dueAt += gap
    read.checkedAt = now
    for (; read.dueAt <= now; read.dueAt += MINUTE_MS) {
      this.#count(read.basin, alignDown(read.dueAt / 1000, MINUTE_SECONDS))
    }
  }
}
