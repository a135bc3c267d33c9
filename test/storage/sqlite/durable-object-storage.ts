import type { SqliteRow, SqliteValue } from '../../../adapters/storage/sqlite/database.ts'
import type { ObjectStorage } from '../../../adapters/storage/sqlite/durable-object.ts'
import { type Database, openDatabase, rowsOf } from './databases.ts'

/** The storage of a Durable Object, on another SQLite. `npm run check:runtimes` has a real one. */
export class SqliteObject implements ObjectStorage {
  readonly #database = openDatabase(':memory:') as Database

  readonly sql = {
    exec: (query: string, ...bindings: unknown[]): SqliteRow[] => {
      const statement = this.#database.prepare(query)
      const rows = rowsOf(statement, bindings)
      return rows.map((row) =>
        Object.fromEntries(Object.entries(row).map(([name, value]) => [name, fromColumn(value)])),
      )
    },
  }

  transactionSync<Result>(work: () => Result): Result {
    this.#database.exec('BEGIN')
    try {
      const result = work()
      this.#database.exec('COMMIT')
      return result
    } catch (error) {
      this.#database.exec('ROLLBACK')
      throw error
    }
  }

  async sync(): Promise<void> {}
}

/** The runtime of Durable Objects returns buffers instead of views. */
function fromColumn(value: unknown): SqliteValue {
  if (!(value instanceof Uint8Array)) return value as SqliteValue
  return value.buffer.slice(value.byteOffset, value.byteOffset + value.byteLength) as ArrayBuffer
}
