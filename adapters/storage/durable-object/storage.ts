import { lossyTextOf, utf8 } from '../../../src/model/bytes.ts'
import { invalid } from '../../../src/model/errors.ts'
import { type DocumentUpdate, type DocumentVersions, planCommit } from '../../../src/storage/commit-plan.ts'
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
  StorageSession,
  StoredBlock,
} from '../../../src/storage/contract.ts'
import { keyBounds } from '../../../src/storage/document-keys.ts'
import { SessionCalls } from '../../../src/storage/session-calls.ts'
import { attempt, ObjectDatabase, type ObjectStorage, objectFailure, type SqlRow } from './database.ts'
import { ObjectLogs, reclaimLogRows } from './logs.ts'

/** The storages that are open in an engine. */
const opened = new WeakSet<ObjectStorage>()

/**
 * Creates a storage in the SQLite database of a Durable Object, `ctx.storage`. Only this object has access to
 * it, so one engine has it open at a time. Does nothing until it is opened.
 *
 * ```ts
 * const hw = await open({ storage: durableObject(ctx.storage) })
 * ```
 *
 * An append resolves once `ctx.storage.sync()` has confirmed it. An object holds 10 GB; beyond that, appends
 * reject with `storage_full`. The names of its tables begin with `headwater_`.
 *
 * Throws `invalid` unless the argument is the storage of a Durable Object.
 */
export function durableObject(storage: ObjectStorage): Storage {
  if (typeof storage?.transactionSync !== 'function') {
    throw invalid("durableObject requires `ctx.storage`, the storage of a Durable Object's state", 'storage')
  }
  return {
    manifest: { name: 'durable-object', durability: 'power-loss', shared: false, notifications: 'none' },
    async open() {
      if (opened.has(storage)) {
        throw objectFailure('blocked', 'another engine of this Durable Object has its storage open')
      }
      const db = new ObjectDatabase(storage)
      attempt(() => db.open())
      opened.add(storage)
      return new DurableObjectSession(db, () => opened.delete(storage))
    },
  }
}

/** Calls do their work before they return, in their order; writes resolve when they are durable. */
class DurableObjectSession implements StorageSession {
  readonly #db: ObjectDatabase
  readonly #catalog: ObjectCatalog
  readonly #logs: ObjectLogs
  readonly #onClosed: () => void
  readonly #calls = new SessionCalls()

  constructor(db: ObjectDatabase, onClosed: () => void) {
    this.#db = db
    this.#catalog = new ObjectCatalog(db)
    this.#logs = new ObjectLogs(db)
    this.#onClosed = onClosed
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
    return this.#write(() => this.#logs.append(request))
  }

  read(logId: string, range: ReadRange): Promise<StoredBlock[]> {
    return this.#read(() => this.#logs.read(logId, range))
  }

  reclaim(limits: ReclaimLimits): Promise<Reclaimed> {
    return this.#write(() => reclaimLogRows(this.#db, this.#logs, limits))
  }

  measure(logIds: readonly string[]): Promise<number[]> {
    return this.#read(() => logIds.map((logId) => this.#logs.measure(logId)))
  }

  close(): Promise<void> {
    return this.#calls.close(this.#onClosed)
  }

  #read<Result>(work: () => Result): Promise<Result> {
    return this.#calls.run(async () => attempt(work))
  }

  #write<Result>(work: () => Result): Promise<Result> {
    return this.#calls.run(() => this.#db.write(work))
  }
}

/** The documents. Keys are UTF-8 bytes, because text with U+0000 is not portable in SQLite. */
class ObjectCatalog implements DocumentVersions {
  readonly #db: ObjectDatabase

  constructor(db: ObjectDatabase) {
    this.#db = db
  }

  get(collection: Collection, key: string): Document | undefined {
    const row = this.#db.first(
      'SELECT key, value, version FROM headwater_documents WHERE collection = ? AND key = ?',
      collection,
      utf8(key),
    )
    return row && documentOf(row)
  }

  list(collection: Collection, range: ListRange): Document[] {
    const bounds = keyBounds(range)
    if (bounds === undefined) return []
    const rows = this.#db.all(
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
    const row = this.#db.first('UPDATE headwater_meta SET version = version + 1 RETURNING version')
    return row!.version as number
  }

  /** Part of a transaction. */
  apply({ collection, key, content }: DocumentUpdate): void {
    if (content === undefined) {
      this.#db.run('DELETE FROM headwater_documents WHERE collection = ? AND key = ?', collection, utf8(key))
      return
    }
    const { text, version } = content
    this.#db.run(
      'INSERT OR REPLACE INTO headwater_documents VALUES (?, ?, ?, ?)',
      collection,
      utf8(key),
      text,
      version,
    )
  }
}

function documentOf({ key, value, version }: SqlRow): Document {
  return {
    key: lossyTextOf(new Uint8Array(key as ArrayBuffer)),
    value: JSON.parse(value as string),
    version: version as number,
  }
}
