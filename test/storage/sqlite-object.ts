import type { ObjectStorage, SqlRow } from '../../adapters/storage/durable-object/database.ts'

interface Database {
  prepare(query: string): { all(...bindings: unknown[]): Record<string, unknown>[] }
  exec(query: string): void
}

type SqliteModule = { readonly DatabaseSync: new (path: string) => Database }

// The types of the oldest supported Node do not know it.
const { getBuiltinModule } = process as { getBuiltinModule?: (name: string) => SqliteModule | undefined }
const SQLITE = getBuiltinModule?.('node:sqlite')

/** The storage of a Durable Object, on the SQLite of Node. `npm run check:runtimes` has a real one. */
export class SqliteObject implements ObjectStorage {
  static readonly isAvailable = SQLITE !== undefined
  readonly #database = new SQLITE!.DatabaseSync(':memory:')

  readonly sql = {
    exec: (query: string, ...bindings: unknown[]): SqlRow[] => {
      const rows = this.#database.prepare(query).all(...bindings.map(toBinding))
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

function toBinding(value: unknown): unknown {
  return value instanceof ArrayBuffer ? new Uint8Array(value) : value
}

/** The runtime of Durable Objects returns buffers instead of views. */
function fromColumn(value: unknown): SqlRow[string] {
  if (!(value instanceof Uint8Array)) return value as SqlRow[string]
  return value.buffer.slice(value.byteOffset, value.byteOffset + value.byteLength) as ArrayBuffer
}
