import { StorageConflict, StorageFailure } from '../../../src/storage/errors.ts'

/**
 * The part of a Durable Object's `ctx.storage` that this storage uses.
 *
 * ```ts
 * // In a Durable Object, before the storage is opened.
 * ctx.storage.transactionSync(() => {
 *   for (const row of ctx.storage.sql.exec('SELECT name FROM sqlite_master')) console.log(row.name)
 * })
 * await ctx.storage.sync()
 * ```
 */
export interface ObjectStorage {
  /** Throws in a class that is not listed in `new_sqlite_classes`. */
  readonly sql: { exec(query: string, ...bindings: unknown[]): Iterable<SqlRow> }
  /** Runs a transaction, which is rolled back if `work` throws. */
  transactionSync<Result>(work: () => Result): Result
  /** Resolves when everything written so far is durable. */
  sync(): Promise<void>
}

type SqlValue = ArrayBuffer | string | number | null

export type SqlRow = Record<string, SqlValue>

/** Persisted: keep stable. A change to the tables needs another version. */
const FORMAT = 1

/**
 * The tables are beside those of the application, so their names have a prefix. `WITHOUT ROWID` saves the
 * second row that an index would write with every append.
 */
const TABLES = [
  // `version` is the greatest version ever given to a document.
  `headwater_meta (id INTEGER PRIMARY KEY, format INTEGER, version INTEGER)`,
  // `value` is JSON.
  `headwater_documents (
    collection TEXT, key BLOB, value TEXT, version INTEGER, PRIMARY KEY (collection, key)
  ) WITHOUT ROWID`,
  // `head` is JSON; null in a deleted log that still has blocks. `due_at` is when a trim, or the deletion,
  // left blocks to free.
  `headwater_logs (
    id TEXT PRIMARY KEY, head TEXT, metered_bytes INTEGER, due_at INTEGER
  ) WITHOUT ROWID`,
  // A block of more than PART_BYTES takes several rows. Those after the first have only the data.
  `headwater_blocks (
    log TEXT, end_seq_num INTEGER, part INTEGER, first_seq_num INTEGER, first_timestamp INTEGER,
    last_timestamp INTEGER, metered_bytes INTEGER, expires_at INTEGER, data BLOB,
    PRIMARY KEY (log, end_seq_num, part)
  ) WITHOUT ROWID`,
]
const INDEXES = [
  `headwater_logs_due ON headwater_logs (due_at) WHERE due_at IS NOT NULL`,
  `headwater_blocks_expiry ON headwater_blocks (expires_at) WHERE expires_at IS NOT NULL`,
]

/** The tables in a Durable Object's database. */
export class ObjectDatabase {
  readonly #storage: ObjectStorage

  constructor(storage: ObjectStorage) {
    this.#storage = storage
  }

  /** Creates the tables if they are missing. */
  open(): void {
    this.#storage.transactionSync(() => {
      for (const table of TABLES) this.run(`CREATE TABLE IF NOT EXISTS ${table}`)
      for (const index of INDEXES) this.run(`CREATE INDEX IF NOT EXISTS ${index}`)
      this.run('INSERT OR IGNORE INTO headwater_meta VALUES (1, ?, 0)', FORMAT)
      const { format } = this.first('SELECT format FROM headwater_meta')!
      if (format !== FORMAT) {
        throw objectFailure(
          'io',
          `the tables have format ${format}; this version of headwater reads ${FORMAT}`,
        )
      }
    })
  }

  /** All rows: an open query would lock its table. */
  all(query: string, ...bindings: SqlBinding[]): SqlRow[] {
    return [...this.#storage.sql.exec(query, ...bindings)]
  }

  /** The first row. The query should select only one. */
  first(query: string, ...bindings: SqlBinding[]): SqlRow | undefined {
    return this.all(query, ...bindings)[0]
  }

  run(query: string, ...bindings: SqlBinding[]): void {
    this.all(query, ...bindings)
  }

  /**
   * Runs a transaction at once, and resolves when it is durable. Until then the runtime holds back every
   * message that leaves the object.
   */
  async write<Result>(work: () => Result): Promise<Result> {
    const result = attempt(() => this.#storage.transactionSync(work))
    try {
      await this.#storage.sync()
    } catch (error) {
      throw toFailure(error, false)
    }
    return result
  }
}

export type SqlBinding = SqlValue | Uint8Array

/** Runs synchronous work that writes nothing if it fails. Throws storage failures for runtime errors. */
export function attempt<Result>(work: () => Result): Result {
  try {
    return work()
  } catch (error) {
    throw toFailure(error, true)
  }
}

export function objectFailure(
  kind: StorageFailure['kind'],
  message: string,
  cause?: unknown,
): StorageFailure {
  return new StorageFailure(kind, message, { nothingWritten: true, cause })
}

function toFailure(error: unknown, nothingWritten: boolean): unknown {
  if (StorageConflict.is(error) || StorageFailure.is(error)) return error
  const reason = error instanceof Error ? error.message : String(error)
  if (/SQLITE_FULL/.test(reason)) {
    const message = 'the Durable Object is full (10 GB): trim or delete streams'
    return new StorageFailure('quota', message, { nothingWritten, cause: error })
  }
  const kind = /SQLITE_(CORRUPT|NOTADB)/.test(reason) ? 'corrupt' : 'io'
  return new StorageFailure(kind, `SQLite failed: ${reason}`, { nothingWritten, cause: error })
}
