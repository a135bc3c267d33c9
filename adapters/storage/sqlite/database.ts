import { systemClock, trackExternalWork } from '../../../src/runtime/clock.ts'
import { secureRandom } from '../../../src/runtime/random.ts'
import { StorageConflict, StorageFailure } from '../../../src/storage/errors.ts'

/** A value of a statement. Integers are numbers: none is beyond 2^53 - 1. */
export type SqliteInput = Uint8Array | string | number | null

/** A value of a row. */
export type SqliteValue = SqliteInput | ArrayBuffer

/** A row by the names of its columns. */
export type SqliteRow = Readonly<Record<string, SqliteValue>>

/** A connection to a SQLite database: all that a driver has to provide. Calls are synchronous. */
export interface SqliteDatabase {
  /** Runs a statement with values for its `?`, and returns all its rows. */
  exec(statement: string, values: readonly SqliteInput[]): Iterable<SqliteRow>
  /**
   * Runs a transaction that no other one of the database overlaps, and rolls it back if `work` throws.
   * `BEGIN IMMEDIATE` and `COMMIT` by default.
   */
  transaction?<Result>(work: () => Result): Result
  /** Resolves when all transactions so far are durable. If absent, they are once they have ended. */
  sync?(): Promise<void>
  /** Closes the connection. Absent if it belongs to the caller. */
  close?(): void
}

/** Persisted: keep stable. A change to the tables needs another version. Previews had 1. */
const FORMAT = 2

/** `version` is the greatest version ever given to a document. */
const META = 'headwater_meta (id INTEGER PRIMARY KEY, format INTEGER, version INTEGER)'

/**
 * The tables may be beside those of an application, so their names have a prefix. `WITHOUT ROWID` saves the
 * second row that an index would write with every append.
 */
const TABLES = [
  // `key` is UTF-8, because text with U+0000 is not portable in SQLite. `value` is JSON.
  `headwater_documents (
    collection TEXT, key BLOB, value TEXT, version INTEGER, PRIMARY KEY (collection, key)
  ) WITHOUT ROWID`,
  // `head` is JSON; null in a deleted log that still has blocks. The times are those of its first block,
  // which is freed first: when it was trimmed, or 0 in a deleted log, and when it expires.
  `headwater_logs (
    id TEXT PRIMARY KEY, head TEXT, metered_bytes INTEGER, trimmed_at INTEGER, expires_at INTEGER
  ) WITHOUT ROWID`,
  // A block of more than PART_BYTES takes several rows. Those after the first have only the data.
  `headwater_blocks (
    log TEXT, end_seq_num INTEGER, part INTEGER, first_seq_num INTEGER, first_timestamp INTEGER,
    last_timestamp INTEGER, metered_bytes INTEGER, expires_at INTEGER, data BLOB,
    PRIMARY KEY (log, end_seq_num, part)
  ) WITHOUT ROWID`,
]
const INDEXES = [
  'headwater_logs_trims ON headwater_logs (trimmed_at) WHERE trimmed_at IS NOT NULL',
  'headwater_logs_expiry ON headwater_logs (expires_at) WHERE expires_at IS NOT NULL',
]

/** The tables of the storage in a database. */
export class SqliteTables {
  readonly #database: SqliteDatabase
  #isFull = false
  /** Why nothing is written any more. */
  #failure: StorageFailure | undefined

  constructor(database: SqliteDatabase) {
    this.#database = database
  }

  /** Creates the tables if they are missing. Rejects those of another format, and leaves them as they are. */
  create(): Promise<void> {
    const createTables = () => {
      this.run(`CREATE TABLE IF NOT EXISTS ${META}`)
      this.run('INSERT OR IGNORE INTO headwater_meta VALUES (1, ?, 0)', FORMAT)
      const { format } = this.first('SELECT format FROM headwater_meta')!
      if (format !== FORMAT) {
        const message = `the tables have format ${format}; this version of headwater reads ${FORMAT}`
        throw new StorageFailure('io', message, { nothingWritten: true })
      }
      for (const table of TABLES) this.run(`CREATE TABLE IF NOT EXISTS ${table}`)
      for (const index of INDEXES) this.run(`CREATE INDEX IF NOT EXISTS ${index}`)
    }
    return whileLocked(() => this.#transaction(createTables))
  }

  /** All rows: a query that is not read to its end would keep its table locked. */
  all(statement: string, ...values: SqliteInput[]): SqliteRow[] {
    return [...this.#database.exec(statement, values)]
  }

  /** The first row. The query should select only one. */
  first(statement: string, ...values: SqliteInput[]): SqliteRow | undefined {
    return this.all(statement, ...values)[0]
  }

  run(statement: string, ...values: SqliteInput[]): void {
    this.all(statement, ...values)
  }

  /** Runs reads of one state of the database. Rejects with storage failures for errors of SQLite. */
  async read<Result>(work: () => Result): Promise<Result> {
    const database = this.#database
    try {
      return await whileLocked(() => (database.transaction ? work() : inTransaction(database, 'BEGIN', work)))
    } catch (error) {
      throw toFailure(error, true)
    }
  }

  /**
   * Runs a transaction at once, or when other processes do not have the database locked, and resolves when it
   * is durable.
   */
  async write<Result>(work: () => Result): Promise<Result> {
    const result = await whileLocked(() => {
      this.assertWritable()
      return this.#transaction(work)
    })
    try {
      await this.#database.sync?.()
    } catch (error) {
      throw toFailure(error, false)
    }
    return result
  }

  /** Whether the last write failed for lack of space. */
  get isFull(): boolean {
    return this.#isFull
  }

  /** Throws if nothing can be written until the storage is opened again. */
  assertWritable(): void {
    if (this.#failure !== undefined) throw this.#failure
  }

  close(): void {
    this.#database.close?.()
  }

  #transaction<Result>(work: () => Result): Result {
    let isCommitting = false
    const toCommit = () => {
      const result = work()
      isCommitting = true
      return result
    }
    const database = this.#database
    try {
      const result = database.transaction
        ? database.transaction(toCommit)
        : inTransaction(database, 'BEGIN IMMEDIATE', toCommit)
      this.#isFull = false
      return result
    } catch (error) {
      const failure = toFailure(error, !isCommitting || isRefusal(error))
      if (!StorageFailure.is(failure)) throw failure
      this.#isFull = failure.kind === 'quota'
      // The system may have dropped what it could not sync, so that later commits rest on what is lost.
      if (!failure.nothingWritten) {
        const message = `an earlier commit failed: ${failure.message}; open the storage again`
        this.#failure = new StorageFailure('io', message, { nothingWritten: true, cause: error })
      }
      throw failure
    }
  }
}

/** How long to wait for the locks of other processes, in milliseconds. */
const LOCKED_MS_MAX = 5_000
/** The longest delay between attempts, in milliseconds. A writer that waits longer rarely finds a gap. */
const DELAY_MS_MAX = 10

/**
 * Repeats a transaction or a statement while other processes have the database locked, for up to five
 * seconds. SQLite itself would block the thread, does not wait at all before it changes the journal mode, and
 * tries so seldom that busy writers starve others.
 */
export async function whileLocked<Result>(work: () => Result): Promise<Result> {
  const deadline = systemClock.now() + LOCKED_MS_MAX
  for (;;) {
    try {
      return work()
    } catch (error) {
      const reason = StorageFailure.is(error) ? error.cause : error
      if (codeOf(reason) !== 'BUSY' || systemClock.now() >= deadline) throw error
    }
    // At random, so that processes that wait do not meet again.
    const delayMs = DELAY_MS_MAX * secureRandom()
    await trackExternalWork(new Promise<void>((resolve) => systemClock.schedule(delayMs, resolve)))
  }
}

/**
 * `BEGIN IMMEDIATE` takes the lock of the writer, which a transaction that has begun to read cannot wait for.
 */
function inTransaction<Result>(
  database: SqliteDatabase,
  begin: 'BEGIN' | 'BEGIN IMMEDIATE',
  work: () => Result,
): Result {
  database.exec(begin, [])
  try {
    const result = work()
    database.exec('COMMIT', [])
    return result
  } catch (error) {
    try {
      database.exec('ROLLBACK', [])
    } catch {
      // After some errors, SQLite has rolled back already.
    }
    throw error
  }
}

/**
 * The primary result codes that errors of `node:sqlite` have as numbers (https://sqlite.org/rescode.html).
 */
const CODES: Readonly<Record<number, string>> = {
  5: 'BUSY',
  8: 'READONLY',
  11: 'CORRUPT',
  13: 'FULL',
  14: 'CANTOPEN',
  26: 'NOTADB',
}

/** The result code of an error of any driver, such as `FULL`. */
function codeOf(error: unknown): string | undefined {
  const { errcode, code, message } = Object(error) as { errcode?: number; code?: unknown; message?: unknown }
  if (typeof errcode === 'number') return CODES[errcode & 0xff]
  return /SQLITE_([A-Z]+)/.exec(`${code} ${message}`)?.[1]
}

/** Whether SQLite had not begun to write a commit that failed. */
function isRefusal(error: unknown): boolean {
  return ['BUSY', 'FULL', 'READONLY'].includes(codeOf(error) ?? '')
}

/** Returns an error of SQLite as a failure, which names the subject. */
export function toFailure(error: unknown, nothingWritten: boolean, subject = 'the database'): unknown {
  if (StorageConflict.is(error) || StorageFailure.is(error)) return error
  const options = { nothingWritten, cause: error }
  const reason = error instanceof Error ? error.message : String(error)
  const code = codeOf(error)
  if (code === 'FULL') {
    // The write-ahead log cannot grow on a full disk, and without it nothing can be freed.
    const remedy = 'trim or delete streams; on a full disk, free 10 MB first'
    return new StorageFailure('quota', `no space is left for ${subject}: ${remedy}`, options)
  }
  if (code === 'BUSY') return new StorageFailure('io', `another process keeps ${subject} locked`, options)
  const isDenied = code === 'READONLY' || code === 'CANTOPEN'
  const isDamaged = code === 'CORRUPT' || code === 'NOTADB'
  const kind = isDenied ? 'denied' : isDamaged ? 'corrupt' : 'io'
  return new StorageFailure(kind, `SQLite failed on ${subject}: ${reason}`, options)
}
