import { type DBSchema, type IDBPDatabase, openDB } from 'idb'
import type { Clock } from '../../../src/runtime/clock.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import { indexedDbFailure, isConnectionError, isRefused, withUnknownOutcome } from './failures.ts'

/**
 * The version of the database, which rises with every format of its entries, so that an upgrade reaches every
 * tab. Previews of the first format used lower ones.
 */
export const DATABASE_VERSION = 6

/** The object stores. Persisted: a change needs another version. */
interface Schema extends DBSchema {
  /** The entries of `key-value/layout.ts`. */
  entries: { key: Uint8Array<ArrayBuffer>; value: Uint8Array }
  /** Random bytes that occupy space; see `reserve.ts`. */
  reserve: { key: typeof RESERVE; value: Uint8Array }
}

export const RESERVE = 'bytes'

export type IndexedDatabase = IDBPDatabase<Schema>

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

  /** Runs reads on one snapshot of the entries. Rejects with `StorageFailure`. */
  read<Result>(
    work: (entries: ReturnType<typeof readEntries>['entries']) => Promise<Result>,
  ): Promise<Result> {
    return this.#run((db) => {
      const { entries, ended } = readEntries(db)
      this.#reads.add(ended)
      void ended.then(() => this.#reads.delete(ended))
      return work(entries)
    }, true)
  }

  /**
   * Runs one transaction, and again on a new connection if this one turns out to be lost. The second run is
   * told if the first one may have succeeded. Rejects with `StorageFailure`.
   */
  write<Result>(work: (db: IndexedDatabase, mayBeWritten: boolean) => Promise<Result>): Promise<Result> {
    return this.#run(work, false)
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

  async #run<Result>(
    work: (db: IndexedDatabase, mayBeWritten: boolean) => Promise<Result>,
    isRead: boolean,
  ): Promise<Result> {
    const database = this.#current()
    const db = await database
    let nothingWritten: boolean
    try {
      return await work(db, false)
    } catch (error) {
      nothingWritten = isRead || isRefused(error)
      if (!isConnectionError(error)) throw indexedDbFailure(error, nothingWritten)
      this.#discard(database)
    }
    const reopened = await this.#reopen(nothingWritten)
    try {
      return await work(reopened, !nothingWritten)
    } catch (error) {
      const failure = indexedDbFailure(error, isRead || isRefused(error))
      throw nothingWritten ? failure : withUnknownOutcome(failure)
    }
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

/** Begins a transaction that reads entries. `ended` resolves at its end, even if it fails. */
export function readEntries(db: IndexedDatabase) {
  const { store, done } = db.transaction('entries', 'readonly')
  return { entries: store, ended: done.catch(() => {}) }
}

/** Calls `onLost` when the connection is lost, and when it blocks an upgrade or deletion. */
function openDatabase(
  name: string,
  clock: Clock,
  onLost: (isUpgrade: boolean) => void,
): Promise<IndexedDatabase> {
  return new Promise((resolve, reject) => {
    let isLate = false
    const cancel = clock.schedule(OPEN_MS_MAX, () => {
      isLate = true
      const message =
        'cannot open the database: another tab with an older version of headwater keeps it open, ' +
        'or is deleting or upgrading it'
      reject(new StorageFailure('blocked', message, { nothingWritten: true }))
    })
    let isPreview = false
    let opening: Promise<IndexedDatabase>
    try {
      opening = openDB<Schema>(name, DATABASE_VERSION, {
        upgrade(db, from, _to, transaction) {
          // No other connection blocks it now.
          cancel()
          // If it fails, so does the opening.
          transaction.done.catch(() => {})
          isPreview = from > 0
          if (isPreview) {
            // Leaves the database as it was.
            transaction.abort()
            return
          }
          db.createObjectStore('entries')
          db.createObjectStore('reserve')
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
        reject(isPreview ? previewFailure(name, error) : openFailure(error))
      },
    )
  })
}

function previewFailure(name: string, cause: unknown): StorageFailure {
  const message =
    `the database ${JSON.stringify(name)} is of an earlier preview of headwater, which cannot be upgraded; ` +
    `delete it with \`indexedDB.deleteDatabase(${JSON.stringify(name)})\``
  return new StorageFailure('blocked', message, { nothingWritten: true, cause })
}

function openFailure(error: unknown): unknown {
  const isNewer = error instanceof DOMException && error.name === 'VersionError'
  if (!isNewer) return indexedDbFailure(error, true)
  const message =
    'a newer version of headwater has upgraded the database ' +
    `beyond version ${DATABASE_VERSION}; reload the page to use it`
  return new StorageFailure('upgraded', message, { nothingWritten: true, cause: error })
}

function unavailable(error: unknown): StorageFailure {
  return new StorageFailure('io', 'IndexedDB is not available', { nothingWritten: true, cause: error })
}
