import type { Clock } from '../../../src/storage/clock.ts'

/** A message costs a tenth of an append, so what changes again and again is told this often, in milliseconds. */
const INTERVAL_MS = 10

/** Whether sessions can tell each other anything. Where they cannot, the engine has to look more often. */
export function canAnnounce(): boolean {
  return typeof BroadcastChannel === 'function'
}

/**
 * Tells the other sessions on the database, of all tabs and workers, which logs changed. Hints: a page that is frozen hears them late,
 * and where there is no `BroadcastChannel` nobody hears them. Never throws: what it tells of is durable already.
 */
export class Announcements {
  readonly #clock: Clock
  readonly #channel: BroadcastChannel | undefined
  /** Logs of which is not told yet that they changed. */
  readonly #untold = new Set<string>()
  /** While it is armed, something was told lately. */
  #cancelTimer: (() => void) | undefined

  constructor(databaseName: string, clock: Clock, onLogChanged: (logId: string) => void) {
    this.#clock = clock
    if (!canAnnounce()) return
    const channel = new BroadcastChannel(`headwater ${databaseName}`)
    channel.onmessage = ({ data }) => {
      // Anybody of this origin can send anything.
      if (Array.isArray(data)) for (const logId of data) if (typeof logId === 'string') onLogChanged(logId)
    }
    // In Node it would keep the process alive.
    ;(channel as { unref?: () => void }).unref?.()
    this.#channel = channel
  }

  /** At once when it is the first for a while, else with what changes meanwhile. */
  tell(logIds: readonly string[]): void {
    if (this.#channel === undefined) return
    for (const logId of logIds) this.#untold.add(logId)
    if (this.#cancelTimer === undefined) this.#flush()
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

  /** Returns whether there was anything to tell. */
  #post(): boolean {
    if (this.#untold.size === 0) return false
    try {
      this.#channel?.postMessage([...this.#untold])
    } catch {
      // Whoever is not told finds it by looking.
    }
    this.#untold.clear()
    return true
  }
}
