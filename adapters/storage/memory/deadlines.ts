import { compareUtf8 } from '../../../src/model/bytes.ts'
import { OrderedList } from '../../../src/storage/ordered-list.ts'
import type { MemoryLog } from './log.ts'

/** The logs that have something to free, by time, so that finding those that are due examines no others. */
export class LogDeadlines {
  readonly #member: 'expiryDue' | 'trimDue'
  readonly #order: OrderedList<MemoryLog>

  /** Keeps the time of a log in this member of the log. */
  constructor(member: 'expiryDue' | 'trimDue') {
    this.#member = member
    this.#order = new OrderedList((a, b) => a[member]! - b[member]! || compareUtf8(a.id, b.id))
  }

  /** Sets the time of a log, or removes the log if the time is undefined. */
  set(log: MemoryLog, time: number | undefined): void {
    const member = this.#member
    if (log[member] === time) return
    if (log[member] !== undefined) this.#order.delete(log)
    log[member] = time
    if (time !== undefined) this.#order.add(log)
  }

  /** Returns the log with the earliest time if that is at or before `now`. */
  due(now: number): MemoryLog | undefined {
    const log = this.#order.first()
    return log !== undefined && log[this.#member]! <= now ? log : undefined
  }
}
