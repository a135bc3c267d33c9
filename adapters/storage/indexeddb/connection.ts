import { openDB } from 'idb'
import type { Clock } from '../../../src/storage/clock.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import { afterAttempt, closed, failureOf, mayBeLost } from './failures.ts'
import {
  type Database,
  type ReadTransaction,
  SCHEMA_VERSION,
  type Schema,
  type StoreName,
  upgrade,
} from './schema.ts'

/** How long other tabs may keep the database from being opened, in milliseconds. */
const OPEN_MS_MAX = 10_000

/**
 * The connection of one session to its database. It is opened anew after it was lost, or given up for somebody who upgrades or deletes
 * the database.
 */
export class Connection {
  readonly #name: string
  readonly #clock: Clock
  #database: Promise<Database> | undefined
  /** Transactions that have told what they read, and not yet come to their end. */
  readonly #reads = new Set<Promise<void>>()
  #closed = false

  constructor(name: string, clock: Clock) {
    this.#name = name
    this.#clock = clock
  }

  /** Rejects with `StorageFailure`. */
  async open(): Promise<void> {
    await this.#opened()
  }

  /**
   * Does the work, and once more on a new connection when this one turns out to be lost: work that writes has to see by itself whether
   * it was done before. Rejects with `StorageConflict` or `StorageFailure`.
   */
  async run<Result>(work: (db: Database) => Promise<Result>): Promise<Result> {
    const database = this.#opened()
    const db = await database
    try {
      return await work(db)
    } catch (error) {
      if (!mayBeLost(error)) throw failureOf(error, false)
      this.#giveUp(database)
    }
    const again = await this.#openedAgain()
    try {
      return await work(again)
    } catch (error) {
      throw failureOf(error, false)
    }
  }

  /** Runs reads that see one state of the database. Rejects with `StorageFailure`. */
  read<Result>(
    stores: readonly StoreName[],
    work: (transaction: ReadTransaction) => Promise<Result>,
  ): Promise<Result> {
    return this.run((db) => {
      const transaction: ReadTransaction = db.transaction([...stores], 'readonly')
      const ended = transaction.done.catch(() => {}).finally(() => this.#reads.delete(ended))
      this.#reads.add(ended)
      return work(transaction)
    })
  }

  /** Once no call is under way. Resolves when nothing keeps the database from being deleted any more. */
  async close(): Promise<void> {
    this.#closed = true
    await Promise.all(this.#reads)
    const database = this.#database
    this.#database = undefined
    await database?.then((db) => db.close()).catch(() => {})
  }

  #opened(): Promise<Database> {
    if (this.#closed) return Promise.reject(closed())
    if (this.#database !== undefined) return this.#database
    const database = openDatabase(this.#name, this.#clock, () => this.#giveUp(database))
    this.#database = database
    database.catch(() => this.#giveUp(database))
    return database
  }

  /** After work was tried. */
  async #openedAgain(): Promise<Database> {
    try {
      return await this.#opened()
    } catch (error) {
      throw StorageFailure.is(error) ? afterAttempt(error) : error
    }
  }

  /** Transactions that are under way come to their end. */
  #giveUp(database: Promise<Database>): void {
    if (this.#database === database) this.#database = undefined
    database.then((db) => db.close()).catch(() => {})
  }
}

/** `onLost` is called when the connection is lost, and when it is in somebody's way. */
function openDatabase(name: string, clock: Clock, onLost: () => void): Promise<Database> {
  return new Promise((resolve, reject) => {
    let isBlocked = false
    let isLate = false
    const cancel = clock.schedule(OPEN_MS_MAX, () => {
      isLate = true
      const reason = isBlocked
        ? 'another tab has it open, with an older version of headwater, and does not let go'
        : 'the browser did not answer; another tab may be deleting or upgrading it'
      reject(
        new StorageFailure('blocked', `the database cannot be opened: ${reason}`, { nothingWritten: true }),
      )
    })
    let opening: Promise<Database>
    try {
      opening = openDB<Schema>(name, SCHEMA_VERSION, {
        upgrade(db, oldVersion, _, transaction) {
          // From now on nobody is in the way.
          cancel()
          upgrade(db, oldVersion, transaction)
        },
        blocked: () => {
          isBlocked = true
        },
        blocking: onLost,
        terminated: onLost,
      })
    } catch (error) {
      // Where there is no IndexedDB, or pages like this one may not have it.
      cancel()
      reject(unavailable(error))
      return
    }
    opening.then(
      (db) => {
        cancel()
        // Nobody waits any more.
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
  if (!isNewer) return failureOf(error, true)
  const message = `a newer version of headwater has upgraded the database beyond version ${SCHEMA_VERSION} of its schema: reload with that one`
  return new StorageFailure('blocked', message, { nothingWritten: true, cause: error })
}

function unavailable(error: unknown): StorageFailure {
  return new StorageFailure('io', 'there is no IndexedDB here', { nothingWritten: true, cause: error })
}
