import { StorageFailure } from '../../../src/storage/errors.ts'
import { type SqliteDatabase, type SqliteRow, type SqliteValue, toFailure, whileLocked } from './database.ts'

/**
 * The part of an open database that this storage uses: a `DatabaseSync` of `node:sqlite`, or a `Database` of
 * `better-sqlite3` or `bun:sqlite`.
 */
export interface OpenDatabase {
  prepare(statement: string): {
    /** False for a statement without rows, which `better-sqlite3` cannot run with `all`. */
    readonly reader?: boolean
    all(...values: SqliteValue[]): unknown
    run(...values: SqliteValue[]): unknown
  }
  close(): void
}

/**
 * - A write-ahead log, so that readers and the writer do not wait for each other.
 * - `FULL` syncs it with each commit. On macOS, only `fullfsync` makes the disk write its cache.
 */
const SETTINGS = ['journal_mode = WAL', 'synchronous = FULL', 'fullfsync = ON', 'checkpoint_fullfsync = ON']

/** Connects through an open database, which its owner closes. */
export async function connect(database: OpenDatabase): Promise<SqliteDatabase> {
  const statements = new Map<string, ReturnType<OpenDatabase['prepare']>>()
  const exec = (text: string, values: readonly SqliteValue[]) => {
    const statement = statements.get(text) ?? database.prepare(text)
    statements.set(text, statement)
    const bound = values.map(bindable)
    if (statement.reader !== false) return statement.all(...bound) as SqliteRow[]
    statement.run(...bound)
    return []
  }
  for (const setting of SETTINGS) await whileLocked(() => exec(`PRAGMA ${setting}`, []))
  return { exec }
}

/** Node 22 takes an empty array, such as a shared one, for null once its buffer was transferred. */
function bindable(value: SqliteValue): SqliteValue {
  return value instanceof Uint8Array && value.length === 0 ? new Uint8Array(0) : value
}

/**
 * Opens a file with the SQLite of the runtime: `bun:sqlite`, `node:sqlite`, or the package `better-sqlite3`.
 * Rejects with `StorageFailure` if there is none, or the file cannot be opened.
 */
export async function openFile(path: string): Promise<SqliteDatabase> {
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
