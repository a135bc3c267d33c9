import { createRequire } from 'node:module'
import type { OpenDatabase, SqliteValue } from '../../../adapters/storage/sqlite/index.ts'

interface Statement {
  /** Only of `better-sqlite3`: whether it returns rows. */
  readonly reader?: boolean
  all(...values: unknown[]): Record<string, SqliteValue>[]
  run(...values: unknown[]): unknown
}

/** What `node:sqlite` and `better-sqlite3` have in common. */
export interface Database {
  prepare(statement: string): Statement
  exec(statements: string): unknown
  close(): void
}

type DatabaseClass = new (path: string) => Database & OpenDatabase

/** The drivers that this process has. Node 22 and later have SQLite. */
export const DRIVERS: Readonly<Record<string, DatabaseClass>> = {
  ...classOf('node:sqlite'),
  ...classOf('better-sqlite3'),
}

/** Opens a database with any of the drivers. */
export function openDatabase(path: string): Database {
  const [Database] = Object.values(DRIVERS)
  return new Database!(path)
}

/** Runs a statement of either driver. */
export function rowsOf(statement: Statement, values: readonly unknown[]): Record<string, SqliteValue>[] {
  if (statement.reader !== false) return statement.all(...values)
  statement.run(...values)
  return []
}

/** The format of the tables in a file. */
export function formatOf(path: string): number {
  const database = openDatabase(path)
  const [meta] = rowsOf(database.prepare('SELECT format FROM headwater_meta'), [])
  database.close()
  return meta!.format as number
}

function classOf(name: string): Record<string, DatabaseClass> {
  try {
    const module = createRequire(import.meta.url)(name)
    return { [name]: module.DatabaseSync ?? module }
  } catch {
    return {}
  }
}
