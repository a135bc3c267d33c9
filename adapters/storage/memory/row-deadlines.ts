import { SlotOrder } from './slot-order.ts'

/** One array for all rows would be copied as it grows. */
const CHUNK_BITS = 12
const CHUNK_ROWS = 2 ** CHUNK_BITS

/** Times of rows, without an object for each, so that finding those that are due examines no others. */
export class RowDeadlines {
  /** The times by row; infinite for none. */
  readonly #times: (Float64Array | undefined)[] = []
  readonly #order = new SlotOrder((a, b) => this.timeOf(a) - this.timeOf(b) || a - b)

  /** Returns the time of a row; infinite if it has none. */
  timeOf(row: number): number {
    return this.#times[row >>> CHUNK_BITS]?.[row & (CHUNK_ROWS - 1)] ?? Number.POSITIVE_INFINITY
  }

  /** Sets the time of a row; infinite for none. */
  set(row: number, time: number): void {
    const before = this.timeOf(row)
    if (before === time) return
    if (before < Number.POSITIVE_INFINITY) this.#order.delete(row)
    const chunk = row >>> CHUNK_BITS
    this.#times[chunk] ??= new Float64Array(CHUNK_ROWS).fill(Number.POSITIVE_INFINITY)
    this.#times[chunk]![row & (CHUNK_ROWS - 1)] = time
    if (time < Number.POSITIVE_INFINITY) this.#order.add(row)
  }

  /** Returns the row with the earliest time if that is at or before `now`. */
  due(now: number): number | undefined {
    const row = this.#order.first()
    return row !== undefined && this.timeOf(row) <= now ? row : undefined
  }
}
