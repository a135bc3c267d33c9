/**
 * Tells an engine about changed logs, for storages whose sessions share memory. Each notification has a
 * microtask of its own, so that it is not within a call of the engine, and a callback that throws does not
 * suppress the others. Changes of a log until then are one notification.
 */
export class ChangeNotifier {
  readonly #onLogChanged: (logId: string) => void
  readonly #pending = new Set<string>()

  constructor(onLogChanged: (logId: string) => void) {
    this.#onLogChanged = onLogChanged
  }

  /** Schedules a notification. */
  notify(logId: string): void {
    if (this.#pending.has(logId)) return
    this.#pending.add(logId)
    queueMicrotask(() => {
      if (this.#pending.delete(logId)) this.#onLogChanged(logId)
    })
  }

  /** Discards the notifications that are scheduled. */
  clear(): void {
    this.#pending.clear()
  }
}
