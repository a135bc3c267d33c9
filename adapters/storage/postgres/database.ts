import { type Clock, trackExternalWork } from '../../../src/runtime/clock.ts'
import { idFrom, secureRandom } from '../../../src/runtime/ids.ts'
import type { ConnectionSource, PostgresRow } from './client.ts'
import {
  databaseFailure,
  errorKindOf,
  isDatabaseMissing,
  isNotPrepared,
  isUnreachableForGood,
  sqlStateOf,
} from './failures.ts'

/** The result of a statement. */
interface StatementResult {
  readonly rows: readonly PostgresRow[]
  /** Whether an earlier attempt may have been committed as well. */
  readonly isRepeated: boolean
  /** The `SQLSTATE`, if it is one that the caller expects. The statement was rolled back. */
  readonly rejectedWith?: string | undefined
}

/** The connection leads to a server that has become a standby. */
const READ_ONLY = '25006'

/** The delays between attempts, in milliseconds: from the first, doubled up to the last. */
const RETRY_MS = { first: 10, last: 1_000 }

/** Runs statements, and repeats those that a lost connection or a conflict ended. */
export class Database {
  readonly #connections: ConnectionSource
  readonly #clock: Clock
  readonly #retryMs: number
  readonly #history: History | undefined
  readonly #closing = new AbortController()
  #hasConnected = false
  #canPrepare = true

  constructor(connections: ConnectionSource, clock: Clock, retryMs: number, history?: History) {
    this.#connections = connections
    this.#clock = clock
    this.#retryMs = retryMs
    this.#history = history
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
      const ownName = this.#canPrepare ? name : undefined
      const attempt = await this.#attempt(text, values, ownName)
      if ('rows' in attempt) return { rows: attempt.rows, isRepeated }
      const { error, wasSent } = attempt
      if (ownName !== undefined && wasSent && isNotPrepared(error)) {
        this.#canPrepare = false
        continue
      }
      const state = sqlStateOf(error)
      if (wasSent && state !== undefined && expected.includes(state)) {
        return { rows: [], isRepeated, rejectedWith: state }
      }
      const kind = errorKindOf(error)
      isRepeated ||= wasSent && kind === 'unknown'
      const isFinal = wasSent
        ? kind === 'rejected'
        : isDatabaseMissing(error) || (!this.#hasConnected && isUnreachableForGood(error))
      if (isFinal || this.#clock.now() >= deadline || this.#closing.signal.aborted) {
        throw databaseFailure(error, !isRepeated)
      }
      await this.#wait(delayMs * (0.5 + secureRandom()))
    }
  }

  /** Opens the connection that listens, if the client can. Rejects with the error of the driver. */
  get listen(): ConnectionSource['listen'] {
    return this.#connections.listen
  }

  /** Ends waits between attempts. Must be followed by `close`. */
  stopRetrying(): void {
    this.#closing.abort()
  }

  close(): Promise<void> {
    return this.#connections.close()
  }

  async #attempt(
    text: string,
    values: readonly unknown[],
    name: string | undefined,
  ): Promise<
    { readonly rows: readonly PostgresRow[] } | { readonly error: unknown; readonly wasSent: boolean }
  > {
    let wasSent = false
    const work = async () => {
      const lease = await this.#connections.acquire()
      wasSent = true
      this.#hasConnected = true
      let isBroken = true
      try {
        if (lease.isNew) await this.#history?.check((query) => lease.run(query, [], undefined))
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

  #wait(delayMs: number): Promise<void> {
    const { signal } = this.#closing
    if (signal.aborted) return Promise.resolve()
    return new Promise((resolve) => {
      const end = () => {
        cancel()
        signal.removeEventListener('abort', end)
        resolve()
      }
      const cancel = this.#clock.schedule(delayMs, end)
      signal.addEventListener('abort', end)
    })
  }
}

/** A statement that is run often, so that a server that can keeps its plan. */
export interface Statement {
  readonly text: string
  readonly name: string
}

/** Behind a pooler, no process takes a statement that another one prepared for its own. */
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
export class History {
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
