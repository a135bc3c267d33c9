import type { Clock } from '../../../src/runtime/clock.ts'

/**
 * A message costs a tenth of an append, so repeated changes are batched over this interval, in milliseconds.
 */
const INTERVAL_MS = 10

/** Whether sessions can notify each other. Where they cannot, the engine polls. */
export function canBroadcast(): boolean {
  return typeof BroadcastChannel === 'function'
}

/**
 * Notifies the other sessions on the database, in all tabs and workers, about changed logs. Messages are
 * hints: a frozen page receives them late, and without `BroadcastChannel` there are none. Never throws,
 * because the changes are already durable.
 */
export class ChangeChannel {
  readonly #clock: Clock
  readonly #channel: BroadcastChannel | undefined
  /** Changed logs that were not announced yet. */
  readonly #pending = new Set<string>()
  /** Set for an interval after each message. */
  #cancelTimer: (() => void) | undefined

  constructor(databaseName: string, clock: Clock, onLogChanged: (logId: string) => void) {
    this.#clock = clock
    if (!canBroadcast()) return
    const channel = new BroadcastChannel(`headwater ${databaseName}`)
    channel.onmessage = ({ data }) => {
      // Any script of the origin can post to the channel.
      if (Array.isArray(data)) for (const logId of data) if (typeof logId === 'string') onLogChanged(logId)
    }
    // In Node an open channel keeps the process alive.
    ;(channel as { unref?: (() => void) | undefined }).unref?.()
    this.#channel = channel
  }

  /** Posts at once after a quiet interval, otherwise together with other changes of the interval. */
  announce(logIds: readonly string[]): void {
    if (this.#channel === undefined) return
    for (const logId of logIds) this.#pending.add(logId)
    if (this.#cancelTimer === undefined) this.#flush()
  }

  /** Announces no more changes of other sessions. */
  mute(): void {
    if (this.#channel !== undefined) this.#channel.onmessage = null
  }

  close(): void {
    this.#cancelTimer?.()
    this.#post()
    this.#channel?.close()
  }

  #flush(): void {
    if (!this.#post()) return
    this.#cancelTimer = this.#clock.schedule(INTERVAL_MS, () => {
      this.#cancelTimer = undefined
      this.#flush()
    })
  }

  /** Returns whether anything was pending. */
  #post(): boolean {
    if (this.#pending.size === 0) return false
    try {
      this.#channel?.postMessage([...this.#pending])
    } catch {
      // Sessions that miss a message find the change by polling.
    }
    this.#pending.clear()
    return true
  }
}
