import { type ClockOffset, measuredOffset, refineOffset } from '../../../src/core/clocks.ts'
import { onAbort } from '../../../src/runtime/abort.ts'
import { type Clock, type ScheduleOptions, trackExternalWork } from '../../../src/runtime/clock.ts'
import { idFrom, secureRandom } from '../../../src/runtime/random.ts'
import { type ConnectionSource, type Lease, numberOf, type PostgresRow } from './connections.ts'
import { databaseFailure, errorKindOf, isUnreachableForGood, READ_ONLY, sqlStateOf } from './failures.ts'

/** The result of a statement. */
interface StatementResult {
  readonly rows: readonly PostgresRow[]
  /** Whether an earlier attempt may have been committed as well. */
  readonly isRepeated: boolean
  /** The `SQLSTATE`, if it is one that the caller expects. The statement was rolled back. */
  readonly rejectedWith?: string | undefined
}

type Attempt =
  | { readonly rows: readonly PostgresRow[] }
  | { readonly error: unknown; readonly wasSent: boolean }

/** The delays between attempts, in milliseconds: from the first, doubled up to the last. */
const RETRY_MS = { first: 10, last: 1_000 }

/**
 * Identifies the history of a server: a promoted replica continues on another timeline, and a restored copy
 * may be another system or database. Null on a standby, to which nothing is appended. Fails on servers that
 * are not quite PostgreSQL.
 */
const HISTORY = `SELECT concat_ws(' ', system_identifier,
    (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database()),
    left(pg_walfile_name(pg_current_wal_lsn()), 8)) AS history
  FROM pg_control_system() WHERE NOT pg_is_in_recovery()`

/** Runs statements, and repeats those that a lost connection or a conflict ended. */
export class Database {
  readonly #connections: ConnectionSource
  readonly #clock: Clock
  readonly #retryMs: number
  readonly #onHistoryChanged: () => void
  #history: unknown
  readonly #closing = new AbortController()
  #hasConnected = false

  /** Calls `onHistoryChanged` when connections lead to a server that may lack confirmed commits. */
  constructor(connections: ConnectionSource, clock: Clock, retryMs: number, onHistoryChanged: () => void) {
    this.#connections = connections
    this.#clock = clock
    this.#retryMs = retryMs
    this.#onHistoryChanged = onHistoryChanged
  }

  /** Runs a statement that may take effect twice. Rejects with `StorageFailure`. */
  async query(
    statement: string | Statement,
    values: readonly unknown[] = [],
  ): Promise<readonly PostgresRow[]> {
    return (await this.run(statement, values)).rows
  }

  /**
   * Runs a statement, as often as needed, for up to `retryMs`. Resolves also if it was rejected with one of
   * the `expected` states. Rejects with `StorageFailure`.
   */
  async run(
    statement: string | Statement,
    values: readonly unknown[],
    expected: readonly string[] = [],
  ): Promise<StatementResult> {
    const { text, name } = typeof statement === 'string' ? { text: statement, name: undefined } : statement
    const deadline = this.#clock.now() + this.#retryMs
    let isRepeated = false
    for (let delayMs = RETRY_MS.first; ; delayMs = Math.min(2 * delayMs, RETRY_MS.last)) {
      const attempt = await this.#attempt(text, values, name)
      if ('rows' in attempt) return { rows: attempt.rows, isRepeated }
      const { error, wasSent } = attempt
      const state = sqlStateOf(error)
      if (wasSent && state !== undefined && expected.includes(state)) {
        return { rows: [], isRepeated, rejectedWith: state }
      }
      const kind = errorKindOf(error)
      isRepeated ||= wasSent && kind === 'unknown'
      const isFinal = wasSent ? kind === 'rejected' : isUnreachableForGood(error, this.#hasConnected)
      if (isFinal || this.#clock.now() >= deadline || this.#closing.signal.aborted) {
        throw databaseFailure(error, !isRepeated)
      }
      await pause(this.#clock, delayMs * (0.5 + secureRandom()), this.#closing.signal)
    }
  }

  /** Ends waits between attempts. Must be followed by `close`. */
  stopRetrying(): void {
    this.#closing.abort()
  }

  close(): Promise<void> {
    return this.#connections.close()
  }

  async #attempt(text: string, values: readonly unknown[], name: string | undefined): Promise<Attempt> {
    let wasSent = false
    const work = async () => {
      const lease = await this.#connections.acquire()
      wasSent = true
      this.#hasConnected = true
      let isBroken = true
      try {
        if (lease.isNew) await this.#checkHistory(lease)
        const rows = await lease.run(text, values, name)
        isBroken = false
        return rows
      } catch (error) {
        isBroken = errorKindOf(error) === 'unknown' || sqlStateOf(error) === READ_ONLY
        throw error
      } finally {
        lease.release(isBroken)
      }
    }
    try {
      return { rows: await trackExternalWork(work()) }
    } catch (error) {
      return { error, wasSent }
    }
  }

  /**
   * Notices on a new connection, before anything else, that it leads to another server than before. Where the
   * role or the engine does not allow that, the heads of logs are compared in any case.
   */
  async #checkHistory(lease: Lease): Promise<void> {
    const [row] = await lease.run(HISTORY, [], undefined).catch(() => [])
    if (row === undefined) return
    const known = this.#history
    this.#history = row.history
    if (known !== undefined && known !== row.history) this.#onHistoryChanged()
  }
}

/** Resolves after a time, or once the signal aborts. */
export function pause(
  clock: Clock,
  delayMs: number,
  signal: AbortSignal,
  options?: ScheduleOptions,
): Promise<void> {
  return new Promise((resolve) => {
    const cancelTimer = clock.schedule(
      delayMs,
      () => {
        stopWatching()
        resolve()
      },
      options,
    )
    const stopWatching = onAbort(signal, () => {
      cancelTimer()
      resolve()
    })
  })
}

/** A statement that is run often, so that a server that can keeps its plan. */
export interface Statement {
  readonly text: string
  readonly name: string
}

/** Several copies of this module may share the connections of a server. */
const PROCESS_ID = idFrom(secureRandom)
let statements = 0

/** Planning takes a server longer than a small statement itself. */
export function prepared(text: string): Statement {
  return { text, name: `headwater_${PROCESS_ID}_${++statements}` }
}

/** The clock of the server, by which all processes stamp and expire records. */
export class ServerClock {
  readonly #database: Database
  readonly #clock: Clock
  /** The clocks agree until a measurement shows otherwise. */
  #offset: ClockOffset = { offsetMs: 0, errorMs: 0 }

  constructor(database: Database, clock: Clock) {
    this.#database = database
    this.#clock = clock
  }

  /** How far it is ahead of the clock of this process, in milliseconds. */
  get offsetMs(): number {
    return this.#offset.offsetMs
  }

  /** Resolves to its time in milliseconds, and measures the offset. */
  async now(): Promise<number> {
    const sentAt = this.#clock.now()
    const [row] = await this.#database.query(
      'SELECT floor(extract(epoch FROM clock_timestamp()) * 1000) AS now',
    )
    const now = numberOf(row?.now)
    this.#offset = refineOffset(this.#offset, measuredOffset(sentAt, this.#clock.now(), now))
    return now
  }
}
