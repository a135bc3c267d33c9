import type { Connection } from '../context.ts'

/**
 * Tells append operations apart: one for each log, connection and minute in which something was appended (service-interface.md "Basin-level
 * metrics"). Connections are held weakly, and only for the minute.
 */
export class AppendOperations {
  #minute = -1
  readonly #connections = new Map<string, WeakSet<Connection>>()

  /** Whether an append is the first of its operation. */
  begins(logId: string, connection: Connection, minute: number): boolean {
    if (minute !== this.#minute) {
      this.#connections.clear()
      this.#minute = minute
    }
    let connections = this.#connections.get(logId)
    if (connections === undefined) {
      connections = new WeakSet()
      this.#connections.set(logId, connections)
    }
    if (connections.has(connection)) return false
    connections.add(connection)
    return true
  }

  /** Forgets what was appended before the minute. */
  forgetBefore(minute: number): void {
    if (this.#minute < minute) this.#connections.clear()
  }
}
