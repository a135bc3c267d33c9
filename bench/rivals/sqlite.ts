import Database from 'better-sqlite3'

export interface SqliteLog {
  /** In one transaction. */
  readonly append: (batch: { readonly first: number; readonly bodies: readonly Uint8Array[] }) => void
  /** Bodies with their sequence numbers, from `seqNum` on. */
  readonly page: (seqNum: number, count: number) => readonly (readonly [seqNum: number, body: Uint8Array])[]
  /** The same, from the first record at or after a time. */
  readonly pageFrom: (
    timestamp: number,
    count: number,
  ) => readonly (readonly [seqNum: number, body: Uint8Array])[]
  readonly close: () => void
}

/** A log in SQLite. Its index by time slows down appends, so only the benchmarks that seek create it. */
export function openSqlite(
  directory: string,
  options: { readonly indexed: boolean; readonly timestampOf: (seqNum: number) => number },
): SqliteLog {
  const database = new Database(`${directory}/log.db`)
  database.pragma('journal_mode = WAL')
  database.pragma('synchronous = FULL')
  database.exec(
    'CREATE TABLE IF NOT EXISTS record (seq_num INTEGER PRIMARY KEY, timestamp INTEGER NOT NULL, body BLOB NOT NULL)',
  )
  if (options.indexed) {
    database.exec('CREATE INDEX IF NOT EXISTS record_by_time ON record (timestamp, seq_num)')
  }
  const insert = database.prepare('INSERT INTO record VALUES (?, ?, ?)')
  const page = database
    .prepare<[number, Uint8Array]>(
      'SELECT seq_num, body FROM record WHERE seq_num >= ? ORDER BY seq_num LIMIT ?',
    )
    .raw()
  const pageFrom = database
    .prepare<[number, Uint8Array]>(
      'SELECT seq_num, body FROM record WHERE timestamp >= ? ORDER BY timestamp, seq_num LIMIT ?',
    )
    .raw()
  return {
    append: database.transaction(({ first, bodies }) => {
      for (const [index, body] of bodies.entries()) {
        insert.run(first + index, options.timestampOf(first + index), body)
      }
    }),
    page: (seqNum, count) => page.all(seqNum, count),
    pageFrom: (timestamp, count) => pageFrom.all(timestamp, count),
    close: () => database.close(),
  }
}
