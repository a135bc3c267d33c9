import type { Clock } from '../../../src/runtime/clock.ts'
import { idFrom, secureRandom } from '../../../src/runtime/random.ts'
import type { ConnectionSource, Listening } from './connections.ts'
import { pause } from './database.ts'

/** A notification costs about as much as an append, so changes are batched over this time, in ms. */
const INTERVAL_MS = 5
/** A payload has at most 7,999 bytes. */
const PAYLOAD_BYTES_MAX = 7_900
/** The delays before listening again, in milliseconds: from the first, doubled up to the last. */
const RECONNECT_MS = { first: 50, last: 5_000 }

/**
 * Notifies the other sessions on the tables about changed logs, on a connection of its own. Messages are
 * hints: they are lost while a connection is, and some engines and poolers deliver none. Never rejects,
 * because the changes are already durable.
 */
export class ChangeChannel {
  readonly #id = idFrom(secureRandom)
  readonly #name: string
  readonly #connections: ConnectionSource
  readonly #clock: Clock
  readonly #onLogChanged: (logId: string) => void
  readonly #closing = new AbortController()
  readonly #pending = new Set<string>()
  #listening: Listening | undefined
  #reconnecting: Promise<void> | undefined
  #sending: Promise<void> | undefined

  /** Schemas whose names begin alike may share a channel. Its name has no quotes, and at most 63 bytes. */
  constructor(
    schema: string,
    connections: ConnectionSource,
    clock: Clock,
    onLogChanged: (logId: string) => void,
  ) {
    this.#name = `headwater_${encodeURIComponent(schema)}`.slice(0, 63)
    this.#connections = connections
    this.#clock = clock
    this.#onLogChanged = onLogChanged
  }

  /** Resolves when the first attempt to listen has ended. Others follow it. */
  async open(): Promise<void> {
    if (this.#connections.listen !== undefined && !(await this.#listen())) this.#reconnect()
  }

  /** Notifies at once after a quiet interval, otherwise together with other changes of the interval. */
  announce(logIds: Iterable<string>): void {
    if (this.#listening === undefined) return
    for (const logId of logIds) this.#pending.add(logId)
    if (this.#pending.size > 0) this.#sending ??= this.#send()
  }

  async close(): Promise<void> {
    this.#closing.abort()
    await this.#reconnecting
    await this.#sending
    await this.#listening?.close()
  }

  /** Whether it listens now. */
  async #listen(): Promise<boolean> {
    let isLost = false
    const onLost = () => {
      isLost = true
      if (this.#listening === undefined) return
      this.#listening = undefined
      this.#reconnect()
    }
    try {
      const onMessage = (payload: string) => this.#receive(payload)
      const listening = await this.#connections.listen!(this.#name, { onMessage, onLost })
      if (!isLost) this.#listening = listening
      return !isLost
    } catch {
      return false
    }
  }

  #reconnect(): void {
    this.#reconnecting = this.#listenAgain()
  }

  async #listenAgain(): Promise<void> {
    const { signal } = this.#closing
    for (let delayMs = RECONNECT_MS.first; ; delayMs = Math.min(2 * delayMs, RECONNECT_MS.last)) {
      await pause(this.#clock, delayMs, signal, { background: true })
      if (signal.aborted || (await this.#listen())) return
    }
  }

  #receive(payload: string): void {
    const [from, ...logIds] = payload.split(' ')
    if (from === this.#id || this.#closing.signal.aborted) return
    for (const logId of logIds) this.#onLogChanged(decodeURIComponent(logId))
  }

  async #send(): Promise<void> {
    while (this.#pending.size > 0 && this.#listening !== undefined) {
      await this.#notify(this.#listening)
      await pause(this.#clock, INTERVAL_MS, this.#closing.signal)
    }
    this.#sending = undefined
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
