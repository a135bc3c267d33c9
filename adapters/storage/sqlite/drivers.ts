import { StorageFailure } from '../../../src/storage/errors.ts'
import { type SqliteDatabase, type SqliteRow, type SqliteValue, toFailure } from './database.ts'

/** The part of a `DatabaseSync` of `node:sqlite` or a `Database` of `bun:sqlite` that this storage uses. */
export interface NativeDatabase {
  prepare(statement: string): { all(...values: SqliteValue[]): unknown }
  close(): void
}

/** The part of a `Database` of `better-sqlite3` that this storage uses. */
export interface BetterDatabase {
  prepare(statement: string): {
    readonly reader: boolean
    all(...values: SqliteValue[]): unknown
    run(...values: SqliteValue[]): unknown
  }
  /** Distinguishes it from the others. */
  pragma(text: string): unknown
  close(): void
}

/** Connects through an open database, which its owner closes. */
export function connection(database: NativeDatabase | BetterDatabase): SqliteDatabase {
  return withDurableCommits(
    'pragma' in database ? betterDriver(database as BetterDatabase) : nativeDriver(database),
  )
}

/**
 * Opens a file with the SQLite of the runtime: `bun:sqlite`, `node:sqlite`, or the package `better-sqlite3`.
 * Rejects with `StorageFailure` if there is none, or the file cannot be opened.
 */
export async function openFile(path: string): Promise<SqliteDatabase> {
  const Database = await databaseClass()
  let database: InstanceType<DatabaseClass> | undefined
  try {
    database = new Database(path)
    const opened = database
    return { ...connection(opened), close: () => opened.close() }
  } catch (error) {
    database?.close()
    throw toFailure(error, true, path)
  }
}

type DatabaseClass = new (path: string) => NativeDatabase | BetterDatabase

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

function nativeDriver(database: NativeDatabase): SqliteDatabase {
  const statements = new Map<string, ReturnType<NativeDatabase['prepare']>>()
  return {
    exec(text, values) {
      const statement = statements.get(text) ?? database.prepare(text)
      statements.set(text, statement)
      return statement.all(...values) as SqliteRow[]
    },
  }
}

/** The same, but statements without rows have another method. */
function betterDriver(database: BetterDatabase): SqliteDatabase {
  const statements = new Map<string, ReturnType<BetterDatabase['prepare']>>()
  return {
    exec(text, values) {
      const statement = statements.get(text) ?? database.prepare(text)
      statements.set(text, statement)
      if (statement.reader) return statement.all(...values) as SqliteRow[]
      statement.run(...values)
      return []
    },
  }
}

/**
 * - A write-ahead log, so that readers and the writer do not wait for each other.
 * - `FULL` syncs it with each commit. On macOS, only `fullfsync` makes the disk write its cache.
 * - Another process that writes is awaited for five seconds, which blocks the thread.
 */
const SETTINGS = [
  'busy_timeout = 5000',
  'journal_mode = WAL',
  'synchronous = FULL',
  'fullfsync = ON',
  'checkpoint_fullfsync = ON',
]

function withDurableCommits(database: SqliteDatabase): SqliteDatabase {
  for (const setting of SETTINGS) database.exec(`PRAGMA ${setting}`, [])
  return database
}
