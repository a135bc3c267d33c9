import { OrderedList } from '../../../src/storage/ordered-list.ts'
import type { Deadlines } from './deadlines.ts'
import type { MemoryLog } from './log.ts'

/** Deadlines of many logs by serial number, without an object for each. */
export class NumberedDeadlines implements Deadlines {
  readonly #logOf: (serial: number) => MemoryLog
  /** The times by serial number; infinite for none. */
  readonly #times: number[] = []
  readonly #order = new OrderedList<number>((a, b) => this.#times[a]! - this.#times[b]! || a - b)

  /** @param logOf Returns the log with a serial number. */
  constructor(logOf: (serial: number) => MemoryLog) {
    this.#logOf = logOf
  }

  set({ serial }: MemoryLog, time = Number.POSITIVE_INFINITY): void {
    const times = this.#times
    const before = times[serial] ?? Number.POSITIVE_INFINITY
    if (before === time) return
    if (before < Number.POSITIVE_INFINITY) this.#order.delete(serial)
    while (times.length < serial) times.push(Number.POSITIVE_INFINITY)
    times[serial] = time
    if (time < Number.POSITIVE_INFINITY) this.#order.add(serial)
  }

  due(now: number): MemoryLog | undefined {
    const serial = this.#order.first()
    return serial !== undefined && this.#times[serial]! <= now ? this.#logOf(serial) : undefined
  }
}
