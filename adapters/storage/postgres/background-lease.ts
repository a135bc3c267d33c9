import type { Clock } from '../../../src/runtime/clock.ts'
import { numberOf } from './client.ts'
import type { Database } from './database.ts'
import type { Tables } from './schema.ts'
import { SERVER_TIME, type ServerClock } from './server-clock.ts'

/** How long a lease lasts without being renewed, in milliseconds. */
const LEASE_MS = 15_000
/** How often the holder renews it, and the others try to get it, in milliseconds. */
const RENEW_MS = 5_000
const TRY_MS = 1_000

/**
 * Elects one of the sessions for the background work: the holder of a row that expires, by the clock of the
 * database, unless it is renewed. So another session takes over soon after a process dies.
 */
export class BackgroundLease {
  readonly #database: Database
  readonly #tables: Tables
  readonly #clock: Clock
  readonly #serverClock: ServerClock | undefined
  readonly #holder: string
  readonly #onElected: (isElected: boolean) => void
  #isElected = false
  #confirmedAt = 0
  #isEnded = false
  #cancelTimer: (() => void) | undefined
  #running: Promise<void>

  /** `holder` identifies the session. Every claim measures the clock of the server. */
  constructor(
    database: Database,
    tables: Tables,
    clock: Clock,
    serverClock: ServerClock | undefined,
    holder: string,
    onElected: (isElected: boolean) => void,
  ) {
    this.#database = database
    this.#tables = tables
    this.#clock = clock
    this.#serverClock = serverClock
    this.#holder = holder
    this.#onElected = onElected
    this.#running = this.#claim()
  }

  /** Gives the lease up. Never rejects. */
  async end(): Promise<void> {
    if (this.#isEnded) return
    this.#isEnded = true
    this.#cancelTimer?.()
    const wasElected = this.#isElected
    this.#setElected(false)
    await this.#running
    if (!wasElected && !this.#isElected) return
    await this.#database
      .query(`DELETE FROM ${this.#tables.leases} WHERE name = 'background' AND holder = $1`, [this.#holder])
      .catch(() => {})
  }

  async #claim(): Promise<void> {
    const startedAt = this.#clock.now()
    try {
      const [row] = await this.#database.query(
        `WITH claimed AS (
           INSERT INTO ${this.#tables.leases} AS l (name, holder, expires_at)
           VALUES ('background', $1, now() + $2 * interval '1 millisecond')
           ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, expires_at = excluded.expires_at
           WHERE l.holder = excluded.holder OR l.expires_at < now() RETURNING 1
         )
         SELECT (SELECT count(*) FROM claimed) AS held, ${SERVER_TIME} AS now`,
        [this.#holder, LEASE_MS],
      )
      const isHeld = numberOf(row?.held) > 0
      this.#serverClock?.measured(startedAt, row?.now)
      if (isHeld) this.#confirmedAt = startedAt
      this.#setElected(isHeld)
    } catch {
      if (this.#clock.now() - this.#confirmedAt >= LEASE_MS) this.#setElected(false)
    }
    if (this.#isEnded) return
    this.#cancelTimer = this.#clock.schedule(
      this.#isElected ? RENEW_MS : TRY_MS,
      () => {
        this.#running = this.#claim()
      },
      { background: true },
    )
  }

  #setElected(isElected: boolean): void {
    const isNew = this.#isElected !== isElected
    this.#isElected = isElected
    // Once it has ended, only `end` learns of a late claim.
    if (isNew && !(this.#isEnded && isElected)) this.#onElected(isElected)
  }
}
