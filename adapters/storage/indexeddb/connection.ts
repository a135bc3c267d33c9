import { openDB, unwrap } from 'idb'
import type { Clock } from '../../../src/runtime/clock.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import { indexedDbFailure, isConnectionError, isRefused, withUnknownOutcome } from './failures.ts'
import {
  type IndexedDatabase,
  type ReadTransaction,
  SCHEMA_VERSION,
  type Schema,
  type StoreName,
  upgrade,
  type WriteTransaction,
} from './schema.ts'

/** How long other tabs may block opening the database, in milliseconds. */
const OPEN_MS_MAX = 10_000

/**
 * The connection of one session to its database. Closes when another connection upgrades or deletes the
 * database. After that, and after a loss, the next call opens a new one.
 */
export class DatabaseConnection {
  readonly #name: string
  readonly #clock: Clock
  readonly #onUpgrade: () => void
  #database: Promise<IndexedDatabase> | undefined
  /** Read transactions that have not ended. */
  readonly #reads = new Set<Promise<void>>()

  /** @param onUpgrade Called when a newer version of the library upgrades the database. */
  constructor(name: string, clock: Clock, onUpgrade: () => void) {
    this.#name = name
    this.#clock = clock
    this.#onUpgrade = onUpgrade
  }

  /** Rejects with `StorageFailure`. */
  async open(): Promise<void> {
    await this.#current()
  }

  /**
   * Runs `work`, and again on a new connection if this one turns out to be lost. Work that writes must detect
   * whether the first run succeeded. Rejects with `StorageConflict` or `StorageFailure`.
   */
  async run<Result>(
    work: (db: IndexedDatabase) => Promise<Result>,
    mode: 'read' | 'write' = 'write',
  ): Promise<Result> {
    const database = this.#current()
    const db = await database
    const isCertain = (error: unknown) => mode === 'read' || isRefused(error)
    let nothingWritten: boolean
    try {
      return await work(db)
    } catch (error) {
      nothingWritten = isCertain(error)
      if (!isConnectionError(error)) throw indexedDbFailure(error, nothingWritten)
      this.#discard(database)
    }
    const reopened = await this.#reopen(nothingWritten)
    try {
      return await work(reopened)
    } catch (error) {
      throw indexedDbFailure(error, nothingWritten && isCertain(error))
    }
  }

  /** Runs reads on one snapshot of the database. Rejects with `StorageFailure`. */
  read<Result>(
    stores: readonly StoreName[],
    work: (transaction: ReadTransaction) => Promise<Result>,
  ): Promise<Result> {
    return this.run((db) => {
      const transaction: ReadTransaction = db.transaction([...stores], 'readonly')
      const ended: Promise<void> = transaction.done.catch(() => {}).finally(() => this.#reads.delete(ended))
      this.#reads.add(ended)
      return work(transaction)
    }, 'read')
  }

  /**
   * Must not be called while calls are running, nor be followed by any. Resolves when this connection no
   * longer blocks a deletion.
   */
  async close(): Promise<void> {
    await Promise.all(this.#reads)
    const database = this.#database
    this.#database = undefined
    await database?.then((db) => db.close()).catch(() => {})
  }

  #current(): Promise<IndexedDatabase> {
    if (this.#database !== undefined) return this.#database
    const onLost = (isUpgrade: boolean) => {
      this.#discard(database)
      if (isUpgrade) this.#onUpgrade()
    }
    const database = openDatabase(this.#name, this.#clock, onLost)
    this.#database = database
    database.catch(() => this.#discard(database))
    return database
  }

  /** Opens it again after a first run of some work. */
  async #reopen(nothingWritten: boolean): Promise<IndexedDatabase> {
    try {
      return await this.#current()
    } catch (error) {
      throw StorageFailure.is(error) && !nothingWritten ? withUnknownOutcome(error) : error
    }
  }

  /** Running transactions still complete. */
  #discard(database: Promise<IndexedDatabase>): void {
    if (this.#database === database) this.#database = undefined
    database.then((db) => db.close()).catch(() => {})
  }
}

/** Calls `onLost` when the connection is lost, and when it blocks an upgrade or deletion. */
function openDatabase(
  name: string,
  clock: Clock,
  onLost: (isUpgrade: boolean) => void,
): Promise<IndexedDatabase> {
  return new Promise((resolve, reject) => {
    let isBlocked = false
    let isLate = false
    const cancel = clock.schedule(OPEN_MS_MAX, () => {
      isLate = true
      const reason = isBlocked
        ? 'another tab with an older version of headwater keeps it open'
        : 'the browser did not respond; another tab may be deleting or upgrading it'
      reject(new StorageFailure('blocked', `cannot open the database: ${reason}`, { nothingWritten: true }))
    })
    let opening: Promise<IndexedDatabase>
    try {
      opening = openDB<Schema>(name, SCHEMA_VERSION, {
        upgrade(db, oldVersion, _, transaction) {
          // No other connection blocks it now.
          cancel()
          upgrade(db, oldVersion, transaction)
        },
        blocked: () => {
          isBlocked = true
        },
        // A deletion has no new version.
        blocking: (_, newVersion) => onLost(newVersion !== null),
        terminated: () => onLost(false),
      })
    } catch (error) {
      // IndexedDB is missing, or not permitted in this page.
      cancel()
      reject(unavailable(error))
      return
    }
    opening.then(
      (db) => {
        cancel()
        if (isLate) db.close()
        else resolve(db)
      },
      (error) => {
        cancel()
        reject(openFailure(error))
      },
    )
  })
}

function openFailure(error: unknown): unknown {
  const isNewer = error instanceof DOMException && error.name === 'VersionError'
  if (!isNewer) return indexedDbFailure(error, true)
  const message =
    'a newer version of headwater has upgraded the database ' +
    `beyond schema version ${SCHEMA_VERSION}; reload the page to use it`
  return new StorageFailure('upgraded', message, { nothingWritten: true, cause: error })
}

function unavailable(error: unknown): StorageFailure {
  return new StorageFailure('io', 'IndexedDB is not available', { nothingWritten: true, cause: error })
}

/** `strict` waits for the disk, `relaxed` for the operating system. */
export type TransactionDurability = 'strict' | 'relaxed'

/** Runs `work` in one transaction. Resolves when it is durable. If `work` rejects, nothing is changed. */
export async function write<Result>(
  db: IndexedDatabase,
  stores: readonly StoreName[],
  durability: TransactionDurability,
  work: (transaction: WriteTransaction, raw: IDBTransaction) => Promise<Result>,
): Promise<Result> {
  const transaction: WriteTransaction = db.transaction([...stores], 'readwrite', { durability })
  const raw = unwrap(transaction)
  // `done` rejects before the abort is complete, and loses its cause.
  transaction.done.catch(() => {})
  const completed = completionOf(raw)
  let result: Result
  try {
    result = await work(transaction, raw)
  } catch (error) {
    abort(raw)
    // A failed request aborts its transaction, and all other requests then fail with an unspecific error.
    const cause = await completed.then(() => undefined, causeOf)
    throw cause ?? error
  }
  await completed
  return result
}

/** Resolves when the transaction is complete. A failed one may fire nothing but `abort`. */
export function completionOf(transaction: IDBTransaction): Promise<void> {
  return new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve()
    transaction.onabort = () =>
      reject(transaction.error ?? new DOMException('the transaction was aborted', 'AbortError'))
  })
}

function abort(transaction: IDBTransaction): void {
  try {
    transaction.abort()
  } catch {
    // It has already ended.
  }
}

function causeOf(error: unknown): unknown {
  return error instanceof DOMException && error.name === 'AbortError' ? undefined : error
}
