import { alignDown, MINUTE_SECONDS } from '../../core/usage/tiers.ts'
import type { StorageClass } from '../../model/config.ts'
import type { Connection } from '../context.ts'
import type { AppendUsage } from './usage-recorder.ts'

/** What was appended to a log in a minute. */
export interface MinuteOfLog {
  readonly logId: string
  readonly basin: string
  readonly storageClass: StorageClass
  /** In seconds. */
  readonly minute: number
  /** Held weakly. */
  readonly connections: WeakSet<Connection>
  /** Metered bytes that were not told yet. */
  bytes: number
}

interface Minute {
  readonly time: number
  readonly logs: Map<string, MinuteOfLog>
}

/**
 * Adds appends up by log, which is cheap, and tells of them when somebody wants to know. Tells append operations apart: one for each log,
 * connection and minute in which something was appended (service-interface.md "Basin-level metrics"). Remembers the minute and the one before,
 * to which a clock may step back.
 */
export class RecentAppends {
  readonly #onOperation: (log: MinuteOfLog) => void
  readonly #onBytes: (log: MinuteOfLog) => void
  #minute: Minute = noMinute()
  #otherMinute: Minute = noMinute()
  #untold: MinuteOfLog[] = []

  /** The first is called at once when an operation begins, the other by `settle`. */
  constructor(onOperation: (log: MinuteOfLog) => void, onBytes: (log: MinuteOfLog) => void) {
    this.#onOperation = onOperation
    this.#onBytes = onBytes
  }

  add({ logId, basin, storageClass, meteredBytes, connection, at }: AppendUsage): void {
    const time = alignDown(at / 1000, MINUTE_SECONDS)
    if (time !== this.#minute.time) this.#turnTo(time)
    let log = this.#minute.logs.get(logId)
    if (log === undefined || log.storageClass !== storageClass) {
      const connections = log?.connections ?? new WeakSet()
      log = { logId, basin, storageClass, minute: time, connections, bytes: 0 }
      this.#minute.logs.set(logId, log)
    }
    if (log.bytes === 0) this.#untold.push(log)
    log.bytes += meteredBytes
    if (log.connections.has(connection)) return
    log.connections.add(connection)
    this.#onOperation(log)
  }

  /** Tells what was not told, and forgets what was appended before the minute before `now` (milliseconds). */
  settle(now: number): void {
    const untold = this.#untold
    this.#untold = []
    for (const log of untold) {
      this.#onBytes(log)
      log.bytes = 0
    }
    const before = alignDown(now / 1000, MINUTE_SECONDS) - MINUTE_SECONDS
    if (this.#minute.time < before) this.#minute = noMinute()
    if (this.#otherMinute.time < before) this.#otherMinute = noMinute()
  }

  #turnTo(time: number): void {
    const next = time === this.#otherMinute.time ? this.#otherMinute : { time, logs: new Map() }
    this.#otherMinute = this.#minute
    this.#minute = next
  }
}

function noMinute(): Minute {
  return { time: -1, logs: new Map() }
}
