import type { Deadlines } from './deadlines.ts'
import type { MemoryLog } from './log.ts'
import { SlotOrder } from './slot-order.ts'

/** Logs by serial number. */
export interface NumberedLogs {
  /** Gives a log a serial number above 0, unless it has one. */
  number(log: MemoryLog): void
  /** Returns the log with a serial number, which must exist. */
  withSerial(serial: number): MemoryLog
}

/**
 * Deadlines of many logs by serial number, without an object for each. Only logs with deadlines get a number.
 */
export class NumberedDeadlines implements Deadlines {
  readonly #logs: NumberedLogs
  /** The times by serial number; infinite for none. */
  readonly #times: number[] = []
  readonly #order = new SlotOrder((a, b) => this.#times[a]! - this.#times[b]! || a - b)

  constructor(logs: NumberedLogs) {
    this.#logs = logs
  }

  set(log: MemoryLog, time = Number.POSITIVE_INFINITY): void {
    const times = this.#times
    const before = times[log.serial] ?? Number.POSITIVE_INFINITY
    if (before === time) return
    this.#logs.number(log)
    const { serial } = log
    if (before < Number.POSITIVE_INFINITY) this.#order.delete(serial)
    while (times.length < serial) times.push(Number.POSITIVE_INFINITY)
    times[serial] = time
    if (time < Number.POSITIVE_INFINITY) this.#order.add(serial)
  }

  due(now: number): MemoryLog | undefined {
    const serial = this.#order.first()
    return serial !== undefined && this.#times[serial]! <= now ? this.#logs.withSerial(serial) : undefined
  }
}
