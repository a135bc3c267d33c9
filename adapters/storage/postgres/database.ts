import { onAbort } from '../../../src/runtime/abort.ts'
import { type Clock, type ScheduleOptions, trackExternalWork } from '../../../src/runtime/clock.ts'
import { idFrom, secureRandom } from '../../../src/runtime/random.ts'
import type { ConnectionSource, PostgresRow } from './connections.ts'
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

/** Runs statements, and repeats those that a lost connection or a conflict ended. */
export class Database {
  readonly #connections: ConnectionSource
  readonly #clock: Clock
  readonly #retryMs: number
  readonly #history: History
  readonly #closing = new AbortController()
  #hasConnected = false

  /** Calls `onHistoryChanged` when connections lead to a server that may lack confirmed commits. */
  constructor(connections: ConnectionSource, clock: Clock, retryMs: number, onHistoryChanged: () => void) {
    this.#connections = connections
    this.#clock = clock
    this.#retryMs = retryMs
    this.#history = new History(onHistoryChanged)
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
        if (lease.isNew) await this.#history.check((query) => lease.run(query, [], undefined))
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

/**
 * Identifies the history of a server: a promoted replica continues on another timeline, and a restored copy
 * may be another system or database. Fails on servers that are not quite PostgreSQL.
 */
const HISTORY = `SELECT system_identifier AS system,
    (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database()) AS database,
    CASE WHEN pg_is_in_recovery() THEN NULL
      ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8) END AS timeline
  FROM pg_control_system()`

/** Notices that connections lead to another server than before, which may lack confirmed commits. */
class History {
  readonly #onChanged: () => void
  #known: string | undefined

  constructor(onChanged: () => void) {
    this.#onChanged = onChanged
  }

  /** Asks on a new connection, before anything else. Never rejects. */
  async check(run: (text: string) => Promise<readonly PostgresRow[]>): Promise<void> {
    let found: string
    try {
      const [row] = await run(HISTORY)
      // A standby has no timeline of its own yet, and nothing is appended to it.
      if (row === undefined || row.timeline === null) return
      found = `${row.system} ${row.database} ${row.timeline}`
    } catch {
      // Not permitted, or not known. The heads of logs are compared in any case.
      return
    }
    const isChanged = this.#known !== undefined && this.#known !== found
    this.#known = found
    if (isChanged) this.#onChanged()
  }
}
