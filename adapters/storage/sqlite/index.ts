/**
 * A storage in a SQLite database of Node, Bun, `better-sqlite3` or another driver.
 *
 * @packageDocumentation
 */

import { invalid } from '../../../src/model/errors.ts'
import type { Storage } from '../../../src/storage/contract.ts'
import { connect, type OpenDatabase, openFile } from './drivers.ts'
import { sqliteStorage } from './storage.ts'

export type { SqliteDatabase, SqliteRow, SqliteValue } from './database.ts'
export type { OpenDatabase } from './drivers.ts'
export { type SqliteStorageOptions, sqliteStorage } from './storage.ts'

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
