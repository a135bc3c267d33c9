import { dueOperations, type OpenReadTimes, startOpenRead } from '../core/usage/open-read.ts'
import { alignDown, MINUTE_SECONDS } from '../core/usage/tiers.ts'
import type { AppendUsage } from '../engine/service/usage.ts'
import type { UsageConnection } from '../engine/streams/target.ts'
import type { StorageClass } from '../model/config.ts'

/** The appends to a log in one minute. */
export interface LogMinute {
  readonly logId: string
  readonly basin: string
  readonly storageClass: StorageClass
  /** The minute in seconds. */
  readonly minute: number
  /** Held weakly. */
  readonly connections: WeakSet<UsageConnection>
  /** Metered bytes not reported yet. */
  bytes: number
}

interface Minute {
  readonly time: number
  readonly logs: Map<string, LogMinute>
}

/**
 * Adds up the appended bytes of each log, which is cheap, and reports the sums on demand. Counts append
 * operations: one for each log, connection and minute with an append. Keeps two minutes, because a clock may
 * step back into the previous one.
 */
export class RecentAppends {
  readonly #onOperation: (log: LogMinute) => void
  readonly #onBytes: (log: LogMinute) => void
  #minute: Minute = emptyMinute()
  #previousMinute: Minute = emptyMinute()
  #unreported: LogMinute[] = []

  /** `onOperation` is called as soon as an operation begins, `onBytes` by `report`. */
  constructor(onOperation: (log: LogMinute) => void, onBytes: (log: LogMinute) => void) {
    this.#onOperation = onOperation
    this.#onBytes = onBytes
  }

  add({ logId, basin, storageClass, meteredBytes, connection, at }: AppendUsage): void {
    const time = alignDown(at / 1000, MINUTE_SECONDS)
    if (time !== this.#minute.time) this.#switchTo(time)
    let log = this.#minute.logs.get(logId)
    if (log === undefined || log.storageClass !== storageClass) {
      const connections = log?.connections ?? new WeakSet()
      log = { logId, basin, storageClass, minute: time, connections, bytes: 0 }
      this.#minute.logs.set(logId, log)
    }
    if (log.bytes === 0) this.#unreported.push(log)
    log.bytes += meteredBytes
    if (log.connections.has(connection)) return
    log.connections.add(connection)
    this.#onOperation(log)
  }

  /**
   * Reports the bytes appended since the last call and drops minutes before the previous one. `now` is in
   * milliseconds.
   */
  report(now: number): void {
    const unreported = this.#unreported
    this.#unreported = []
    for (const log of unreported) {
      this.#onBytes(log)
      log.bytes = 0
    }
    const before = alignDown(now / 1000, MINUTE_SECONDS) - MINUTE_SECONDS
    if (this.#minute.time < before) this.#minute = emptyMinute()
    if (this.#previousMinute.time < before) this.#previousMinute = emptyMinute()
  }

  #switchTo(time: number): void {
    const next = time === this.#previousMinute.time ? this.#previousMinute : { time, logs: new Map() }
    this.#previousMinute = this.#minute
    this.#minute = next
  }
}

function emptyMinute(): Minute {
  return { time: -1, logs: new Map() }
}

interface OpenRead {
  readonly basin: string
  times: OpenReadTimes
}

/** The open streaming reads. Reports their operations on demand, which saves a timer for each of them. */
export class OpenReads {
  readonly #open = new Set<OpenRead>()
  readonly #onDue: (basin: string, minute: number) => void

  constructor(onDue: (basin: string, minute: number) => void) {
    this.#onDue = onDue
  }

  get size(): number {
    return this.#open.size
  }

  /** Adds a read. The returned function ends it; a second call does nothing. Times are in milliseconds. */
  begin(basin: string, now: number): (now: number) => void {
    const read: OpenRead = { basin, times: startOpenRead(now) }
    this.#reportOne(read, now)
    this.#open.add(read)
    return (endedAt) => {
      if (this.#open.delete(read)) this.#reportOne(read, endedAt)
    }
  }

  /** Reports the operations that are due. To be called every minute. */
  report(now: number): void {
    for (const read of this.#open) this.#reportOne(read, now)
  }

  #reportOne(read: OpenRead, now: number): void {
    const { minutes, next } = dueOperations(read.times, now)
    read.times = next
    for (const minute of minutes) this.#onDue(read.basin, minute)
  }
}
