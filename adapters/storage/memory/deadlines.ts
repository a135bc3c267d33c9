import { OrderedList } from '../../../src/storage/ordered-list.ts'

/**
 * The numbers of the logs that have something to free, by time, so that finding those that are due examines
 * no others.
 */
export class Deadlines {
  /** The times by log; infinite for none. */
  readonly #times: number[] = []
  readonly #order = new OrderedList<number>((a, b) => this.#times[a]! - this.#times[b]! || a - b)

  /** Sets the time of a log, or removes the log if the time is undefined. */
  set(log: number, time = Number.POSITIVE_INFINITY): void {
    const times = this.#times
    const before = times[log] ?? Number.POSITIVE_INFINITY
    if (before === time) return
    if (before < Number.POSITIVE_INFINITY) this.#order.delete(log)
    while (times.length < log) times.push(Number.POSITIVE_INFINITY)
    times[log] = time
    if (time < Number.POSITIVE_INFINITY) this.#order.add(log)
  }

  /** Returns the log with the earliest time if that is at or before `now`. */
  due(now: number): number | undefined {
    const log = this.#order.first()
    return log !== undefined && this.#times[log]! <= now ? log : undefined
  }
}
