import type { LogState } from './small-append.ts'

/** Each has some hundred bytes. */
const LOGS_MAX = 256

/** The logs that were last appended to, as they were then. */
export class RecentLogs {
  /** In the order of the appends. */
  readonly #logs = new Map<string, LogState>()

  get(logId: string): LogState | undefined {
    return this.#logs.get(logId)
  }

  /** Undefined forgets. */
  set(logId: string, state: LogState | undefined): void {
    this.#logs.delete(logId)
    if (state === undefined) return
    this.#logs.set(logId, state)
    if (this.#logs.size <= LOGS_MAX) return
    const [oldest] = this.#logs.keys()
    this.#logs.delete(oldest!)
  }
}
