import { lossyTextOf, utf8 } from '../../../src/model/bytes.ts'
import { trackExternalWork } from '../../../src/runtime/clock.ts'
import { macrotask } from '../../../src/runtime/macrotask.ts'
import { appendedBytes } from '../../../src/storage/block-sizes.ts'
import {
  type DocumentUpdate,
  type DocumentVersions,
  keyBounds,
  planCommit,
} from '../../../src/storage/commit-plan.ts'
import type {
  AppendRequest,
  CatalogChange,
  Collection,
  Document,
  Head,
  ListRange,
  ReadRange,
  Reclaimed,
  ReclaimLimits,
  Storage,
  StorageManifest,
  StorageSession,
  StoredBlock,
} from '../../../src/storage/contract.ts'
import { GroupCommit, type PendingItem } from '../../../src/storage/group-commit.ts'
import { SessionCalls } from '../../../src/storage/session-calls.ts'
import { type SqliteDatabase, type SqliteRow, SqliteTables, toFailure } from './database.ts'
import { bytesOf, SqliteLogs } from './logs.ts'

/** The most data of one transaction, in bytes, unless a single append has more. */
const GROUP_BYTES_MAX = 4 * 1024 * 1024

/** Options of `sqliteStorage`. */
export interface SqliteStorageOptions extends Pick<StorageManifest, 'name' | 'durability' | 'shared'> {
  /** Connects to the database, and creates it if it is missing. Called for each session. */
  readonly open: () => SqliteDatabase | Promise<SqliteDatabase>
}

/**
 * Creates a storage in a SQLite database that a driver connects to, such as one of another runtime
 * (docs/sqlite.md). Does nothing until it is opened.
 */
export function sqliteStorage({ name, durability, shared, open }: SqliteStorageOptions): Storage {
  return {
    manifest: { name, durability, shared, notifications: 'none' },
    async open() {
      let database: SqliteDatabase | undefined
      try {
        database = await open()
        const tables = new SqliteTables(database)
        await tables.create()
        return new SqliteSession(tables, database.sync === undefined)
      } catch (error) {
        database?.close?.()
        throw toFailure(error, true)
      }
    },
  }
}

/** One connection. Calls do their work at once, in their order, except that appends wait for each other. */
class SqliteSession implements StorageSession {
  readonly #tables: SqliteTables
  readonly #catalog: SqliteCatalog
  readonly #logs: SqliteLogs
  readonly #appends: GroupCommit<AppendRequest>
  readonly #calls = new SessionCalls()

  /**
   * @param isBlocking Whether a commit blocks the thread until it is durable, so that nothing can join it.
   */
  constructor(tables: SqliteTables, isBlocking: boolean) {
    this.#tables = tables
    this.#catalog = new SqliteCatalog(tables)
    this.#logs = new SqliteLogs(tables)
    this.#appends = new GroupCommit(
      (group) => this.#appendGroup(group),
      appendedBytes,
      GROUP_BYTES_MAX,
      // Requests that have already arrived share the commit.
      isBlocking ? () => trackExternalWork(macrotask()) : undefined,
    )
  }

  get(collection: Collection, key: string): Promise<Document | undefined> {
    return this.#read(() => this.#catalog.get(collection, key))
  }

  list(collection: Collection, range: ListRange): Promise<Document[]> {
    return this.#read(() => this.#catalog.list(collection, range))
  }

  commit(changes: readonly CatalogChange[]): Promise<void> {
    const [catalog, logs] = [this.#catalog, this.#logs]
    return this.#write(() => {
      const plan = planCommit(changes, catalog, logs)
      for (const update of plan.documents) catalog.apply(update)
      for (const update of plan.logs) logs.apply(update)
    })
  }

  head(logId: string): Promise<Head | undefined> {
    return this.#read(() => this.#logs.headOf(logId))
  }

  append(request: AppendRequest): Promise<void> {
    return this.#calls.run(() => this.#appends.add(request))
  }

  read(logId: string, range: ReadRange): Promise<StoredBlock[]> {
    return this.#read(() => this.#logs.read(logId, range))
  }

  reclaim(limits: ReclaimLimits): Promise<Reclaimed> {
    return this.#write(() => this.#logs.reclaim(limits))
  }

  measure(logIds: readonly string[]): Promise<number[]> {
    return this.#read(() => logIds.map((logId) => this.#logs.measure(logId)))
  }

  check(): Promise<void> {
    return this.#calls.run(async () => this.#tables.assertWritable())
  }

  isFull(): boolean {
    return this.#tables.isFull
  }

  close(): Promise<void> {
    return this.#calls.close(() => this.#tables.close())
  }

  async #appendGroup(group: readonly PendingItem<AppendRequest>[]): Promise<void> {
    try {
      const conflicts = await this.#tables.write(() => this.#logs.append(group.map(({ item }) => item)))
      for (const { item, resolve, reject } of group) {
        const conflict = conflicts.get(item)
        if (conflict === undefined) resolve()
        else reject(conflict)
      }
    } catch (error) {
      for (const { reject } of group) reject(error)
    }
  }

  #read<Result>(work: () => Result): Promise<Result> {
    return this.#calls.run(() => this.#tables.read(work))
  }

  #write<Result>(work: () => Result): Promise<Result> {
    return this.#calls.run(() => this.#tables.write(work))
  }
}

/** The documents. */
class SqliteCatalog implements DocumentVersions {
  readonly #tables: SqliteTables

  constructor(tables: SqliteTables) {
    this.#tables = tables
  }

  get(collection: Collection, key: string): Document | undefined {
    const row = this.#tables.first(
      'SELECT key, value, version FROM headwater_documents WHERE collection = ? AND key = ?',
      collection,
      utf8(key),
    )
    return row && documentOf(row)
  }

  list(collection: Collection, range: ListRange): Document[] {
    const bounds = keyBounds(range)
    if (bounds === undefined) return []
    const rows = this.#tables.all(
      `SELECT key, value, version FROM headwater_documents
       WHERE collection = ? AND key ${bounds.isFromExcluded ? '>' : '>='} ? AND key < ? ORDER BY key LIMIT ?`,
      collection,
      bounds.from,
      bounds.to,
      range.limit,
    )
    return rows.map(documentOf)
  }

  versionOf(collection: Collection, key: string): number | undefined {
    return this.get(collection, key)?.version
  }

  /** Part of a transaction. */
  nextVersion(): number {
    const row = this.#tables.first('UPDATE headwater_meta SET version = version + 1 RETURNING version')
    return row!.version as number
  }

  /** Part of a transaction. */
  apply({ collection, key, content }: DocumentUpdate): void {
    if (content === undefined) {
      this.#tables.run(
        'DELETE FROM headwater_documents WHERE collection = ? AND key = ?',
        collection,
        utf8(key),
      )
      return
    }
    const { text, version } = content
    this.#tables.run(
      'INSERT OR REPLACE INTO headwater_documents VALUES (?, ?, ?, ?)',
      collection,
      utf8(key),
      text,
      version,
    )
  }
}

function documentOf({ key, value, version }: SqliteRow): Document {
  return {
    key: lossyTextOf(bytesOf(key)),
    value: JSON.parse(value as string),
    version: version as number,
  }
}
