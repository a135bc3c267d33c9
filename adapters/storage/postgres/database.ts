import { type Clock, trackExternalWork } from '../../../src/runtime/clock.ts'
import { secureRandom } from '../../../src/runtime/ids.ts'
import type { ConnectionSource, PostgresRow } from './client.ts'
import {
  databaseFailure,
  errorKindOf,
  isDatabaseMissing,
  isNotPrepared,
  isUnreachableForGood,
  sqlStateOf,
} from './failures.ts'
import type { History } from './history.ts'
import type { Statement } from './statement.ts'

/** The result of a statement. */
export interface StatementResult {
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
