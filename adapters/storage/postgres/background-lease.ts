import type { Clock } from '../../../src/runtime/clock.ts'
import { idFrom, secureRandom } from '../../../src/runtime/random.ts'
import { numberOf } from './connections.ts'
import { type Database, pause, SERVER_TIME, type ServerClock } from './database.ts'
import type { Tables } from './schema.ts'

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
  readonly #onElected: (isElected: boolean) => void
  readonly #holder = idFrom(secureRandom)
  readonly #ending = new AbortController()
  readonly #held: Promise<void>
  #isElected = false
  #confirmedAt = 0

  /** Every claim measures the clock of the server. */
  constructor(
    database: Database,
    tables: Tables,
    clock: Clock,
    serverClock: ServerClock | undefined,
    onElected: (isElected: boolean) => void,
  ) {
    this.#database = database
    this.#tables = tables
    this.#clock = clock
    this.#serverClock = serverClock
    this.#onElected = onElected
    this.#held = this.#hold()
  }

  /** Gives the lease up. Never rejects. */
  end(): Promise<void> {
    this.#setElected(false)
    this.#ending.abort()
    return this.#held
  }

  async #hold(): Promise<void> {
    const { signal } = this.#ending
    while (!signal.aborted) {
      await this.#claim()
      await pause(this.#clock, this.#isElected ? RENEW_MS : TRY_MS, signal, { background: true })
    }
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
      this.#serverClock?.measured(startedAt, row?.now)
      this.#confirmedAt = startedAt
      this.#setElected(numberOf(row?.held) > 0)
    } catch {
      if (this.#clock.now() - this.#confirmedAt >= LEASE_MS) this.#setElected(false)
    }
  }

  #setElected(isElected: boolean): void {
    if (this.#isElected === isElected || this.#ending.signal.aborted) return
    this.#isElected = isElected
    this.#onElected(isElected)
  }
}
