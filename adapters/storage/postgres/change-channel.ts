import type { Clock } from '../../../src/runtime/clock.ts'
import { idFrom, secureRandom } from '../../../src/runtime/ids.ts'
import type { Listening } from './client.ts'
import type { Database } from './database.ts'
import { errorKindOf, isDatabaseMissing } from './failures.ts'

/** A notification costs about as much as an append, so changes are batched over this time, in ms. */
const INTERVAL_MS = 5
/** A payload has at most 7,999 bytes. */
const PAYLOAD_BYTES_MAX = 7_900
/** How long to wait before listening again after a lost connection, in milliseconds. */
const RECONNECT_MS = { first: 50, last: 5_000 }

/**
 * Notifies the other sessions on the tables about changed logs, on a connection of its own. Messages are
 * hints: they are lost while a connection is, and some engines and poolers deliver none. Never rejects,
 * because the changes are already durable.
 */
export class NotificationChannel {
  readonly #id = idFrom(secureRandom)
  readonly #name: string
  readonly #database: Database
  readonly #clock: Clock
  readonly #onLogChanged: (logId: string) => void
  readonly #pending = new Set<string>()
  #listening: Listening | undefined
  #connecting: Promise<void> | undefined
  #sending: Promise<void> | undefined
  /** Set while messages are held back, and while a lost connection is. */
  #cancelSend: (() => void) | undefined
  #cancelReconnect: (() => void) | undefined
  #isClosed = false

  /** `name` is that of the channel: at most 63 bytes, without quotes. */
  constructor(name: string, database: Database, clock: Clock, onLogChanged: (logId: string) => void) {
    this.#name = name
    this.#database = database
    this.#clock = clock
    this.#onLogChanged = onLogChanged
  }

  /** Resolves when the first attempt to listen has ended. */
  open(): Promise<void> {
    this.#connecting = this.#listen(RECONNECT_MS.first)
    return this.#connecting
  }

  /** Notifies at once after a quiet interval, otherwise together with other changes of the interval. */
  announce(logIds: Iterable<string>): void {
    if (this.#listening === undefined) return
    for (const logId of logIds) this.#pending.add(logId)
    if (this.#pending.size > 0 && this.#sending === undefined && this.#cancelSend === undefined) this.#send()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#cancelReconnect?.()
    this.#cancelSend?.()
    await this.#connecting
    await this.#sending
    const listening = this.#listening
    while (this.#pending.size > 0 && listening !== undefined) await this.#notify(listening)
    this.#listening = undefined
    await listening?.close()
  }

  async #listen(retryMs: number): Promise<void> {
    const { listen } = this.#database
    if (listen === undefined) return
    let isLost = false
    const onLost = () => {
      isLost = true
      this.#listening = undefined
      this.#reconnectAfter(RECONNECT_MS.first)
    }
    try {
      const listening = await listen(this.#name, { onMessage: (payload) => this.#receive(payload), onLost })
      if (!isLost) this.#listening = listening
    } catch (error) {
      // The server does not know LISTEN, or a pooler forbids it: engines poll.
      if (errorKindOf(error) === 'rejected' && !isDatabaseMissing(error)) return
      this.#reconnectAfter(Math.min(2 * retryMs, RECONNECT_MS.last))
    }
  }

  #reconnectAfter(delayMs: number): void {
    if (this.#isClosed) return
    this.#cancelReconnect?.()
    this.#cancelReconnect = this.#clock.schedule(
      delayMs,
      () => {
        this.#connecting = this.#listen(delayMs)
      },
      { background: true },
    )
  }

  #receive(payload: string): void {
    const [from, ...logIds] = payload.split(' ')
    if (from === this.#id || this.#isClosed) return
    for (const logId of logIds) this.#onLogChanged(decodeURIComponent(logId))
  }

  #send(): void {
    const listening = this.#listening
    if (listening === undefined || this.#pending.size === 0) return
    this.#sending = this.#notify(listening).finally(() => {
      this.#sending = undefined
      if (this.#isClosed) return
      this.#cancelSend = this.#clock.schedule(INTERVAL_MS, () => {
        this.#cancelSend = undefined
        this.#send()
      })
    })
  }

  async #notify({ client }: Listening): Promise<void> {
    let payload = this.#id
    for (const logId of this.#pending) {
      const longer = `${payload} ${encodeURIComponent(logId)}`
      if (longer.length > PAYLOAD_BYTES_MAX) break
      payload = longer
      this.#pending.delete(logId)
    }
    try {
      await client.query('SELECT pg_notify($1, $2)', [this.#name, payload])
    } catch {
      // Sessions that miss a message find the change by polling.
    }
  }
}
