import type { LogRow } from './log-row.ts'

/** A row has a few kilobytes. */
const ROWS_MAX = 256

/** The rows of the logs that were last appended to, as they were then. */
export class RecentRows {
  /** In the order of the appends. */
  readonly #rows = new Map<string, LogRow>()

  get(logId: string): LogRow | undefined {
    return this.#rows.get(logId)
  }

  /** Undefined forgets. */
  set(logId: string, row: LogRow | undefined): void {
    this.#rows.delete(logId)
    if (row === undefined) return
    this.#rows.set(logId, row)
    if (this.#rows.size <= ROWS_MAX) return
    const [oldest] = this.#rows.keys()
    this.#rows.delete(oldest!)
  }
}
