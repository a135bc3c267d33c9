/**
 * A storage in a SQLite database of Node, Bun, `better-sqlite3` or another driver.
 *
 * @packageDocumentation
 */

import { invalid } from '../../../src/model/errors.ts'
import type { Storage } from '../../../src/storage/contract.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import { type SqliteDatabase, type SqliteInput, type SqliteRow, toFailure, whileLocked } from './database.ts'
import { sqliteStorage } from './storage.ts'

export type { SqliteDatabase, SqliteInput, SqliteRow, SqliteValue } from './database.ts'
export { type SqliteStorageOptions, sqliteStorage } from './storage.ts'

/**
 * The part of an open database that this storage uses: a `DatabaseSync` of `node:sqlite`, or a `Database` of
 * `better-sqlite3` or `bun:sqlite`.
 */
export interface OpenDatabase {
  prepare(statement: string): {
    /** False for a statement without rows, which `better-sqlite3` cannot run with `all`. */
    readonly reader?: boolean
    all(...values: SqliteInput[]): unknown
    run(...values: SqliteInput[]): unknown
  }
  close(): void
}

/**
 * Creates a storage in a SQLite database: the path of a file, or an open database of `node:sqlite`,
 * `better-sqlite3` or `bun:sqlite`, which may have tables of the application too. Does nothing until it is
 * opened.
 *
 * ```ts
 * const hw = await open({ storage: sqlite('streams.db') })
 * ```
 *
 * A path is opened with the SQLite of Bun or of Node 22.13 and later, otherwise with the package
 * `better-sqlite3`. The storage sets `journal_mode = WAL` and `synchronous = FULL`: an append resolves when
 * it survives a loss of power. Appends that wait share a transaction, which blocks the thread until it is on
 * the disk. Several processes may use a file of a local disk; each polls for the changes of the others.
 *
 * The names of the tables begin with `headwater_`. Throws `invalid` for any other argument.
 */
export function sqlite(database: string | OpenDatabase): Storage {
  const isPath = typeof database === 'string' && database !== ''
  if (!isPath && typeof (database as OpenDatabase)?.prepare !== 'function') {
    throw invalid('sqlite requires the path of a file, or an open database', 'database')
  }
  return sqliteStorage({
    name: 'sqlite',
    durability: 'power-loss',
    shared: true,
    open: () => (isPath ? openFile(database) : connect(database as OpenDatabase)),
  })
}

/**
 * - A write-ahead log, so that readers and the writer do not wait for each other.
 * - `FULL` syncs it with each commit. On macOS, only `fullfsync` makes the disk write its cache.
 */
const SETTINGS = ['journal_mode = WAL', 'synchronous = FULL', 'fullfsync = ON', 'checkpoint_fullfsync = ON']

/** Connects through an open database, which its owner closes. */
async function connect(database: OpenDatabase): Promise<SqliteDatabase> {
  const statements = new Map<string, ReturnType<OpenDatabase['prepare']>>()
  const exec = (text: string, values: readonly SqliteInput[]) => {
    const statement = statements.get(text) ?? database.prepare(text)
    statements.set(text, statement)
    if (statement.reader !== false) return statement.all(...values) as SqliteRow[]
    statement.run(...values)
    return []
  }
  for (const setting of SETTINGS) await whileLocked(() => exec(`PRAGMA ${setting}`, []))
  return { exec }
}

/**
 * Opens a file with the SQLite of the runtime: `bun:sqlite`, `node:sqlite`, or the package `better-sqlite3`.
 * Rejects with `StorageFailure` if there is none, or the file cannot be opened.
 */
async function openFile(path: string): Promise<SqliteDatabase> {
  const Database = await databaseClass()
  let database: OpenDatabase | undefined
  try {
    const opened = new Database(path)
    database = opened
    // SQLite would block the thread while it waits for a lock.
    opened.prepare('PRAGMA busy_timeout = 0').all()
    return { ...(await connect(opened)), close: () => opened.close() }
  } catch (error) {
    database?.close()
    throw toFailure(error, true, path)
  }
}

type DatabaseClass = new (path: string) => OpenDatabase

/** Names that are not literals, because bundlers would resolve those that the runtime lacks. */
const MODULES = ['bun:sqlite', 'node:sqlite', 'better-sqlite3']

async function databaseClass(): Promise<DatabaseClass> {
  for (const name of MODULES) {
    const module = await import(/* @vite-ignore */ name).catch(() => undefined)
    const found = module?.DatabaseSync ?? module?.Database ?? module?.default
    if (found !== undefined) return found
  }
  const message = 'no SQLite found: use Node 22.13 or later, Bun, or install `better-sqlite3`'
  throw new StorageFailure('io', message, { nothingWritten: true })
}
