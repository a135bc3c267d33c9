import { SlotOrder } from './slot-order.ts'

/** Times of rows, without an object for each, so that finding those that are due examines no others. */
export class NumberedDeadlines {
  /** The times by row; infinite for none. */
  readonly #times: number[] = []
  readonly #order = new SlotOrder((a, b) => this.#times[a]! - this.#times[b]! || a - b)

  /** Returns the time of a row; infinite if it has none. */
  timeOf(row: number): number {
    return this.#times[row] ?? Number.POSITIVE_INFINITY
  }

  /** Sets the time of a row; infinite for none. */
  set(row: number, time: number): void {
    const before = this.timeOf(row)
    if (before === time) return
    const times = this.#times
    if (before < Number.POSITIVE_INFINITY) this.#order.delete(row)
    while (times.length < row) times.push(Number.POSITIVE_INFINITY)
    times[row] = time
    if (time < Number.POSITIVE_INFINITY) this.#order.add(row)
  }

  /** Returns the row with the earliest time if that is at or before `now`. */
  due(now: number): number | undefined {
    const row = this.#order.first()
    return row !== undefined && this.#times[row]! <= now ? row : undefined
  }
}
