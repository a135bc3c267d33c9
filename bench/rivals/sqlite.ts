import Database from 'better-sqlite3'

export interface SqliteLog {
  /** In one transaction. */
  readonly append: (batch: { readonly first: number; readonly bodies: readonly Uint8Array[] }) => void
  readonly close: () => void
}

/** A log in SQLite. */
export function openSqlite(directory: string, timestampOf: (seqNum: number) => number): SqliteLog {
  const database = new Database(`${directory}/log.db`)
  database.pragma('journal_mode = WAL')
  database.pragma('synchronous = FULL')
  database.exec(
    'CREATE TABLE IF NOT EXISTS record (seq_num INTEGER PRIMARY KEY, timestamp INTEGER NOT NULL, body BLOB NOT NULL)',
  )
  const insert = database.prepare('INSERT INTO record VALUES (?, ?, ?)')
  return {
    append: database.transaction(({ first, bodies }) => {
      for (const [index, body] of bodies.entries()) {
        insert.run(first + index, timestampOf(first + index), body)
      }
    }),
    close: () => database.close(),
  }
}
