import { invalid } from '../../../src/model/errors.ts'
import { planCommit } from '../../../src/storage/commit-plan.ts'
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
import { SessionCalls } from '../../../src/storage/session-calls.ts'
import { ObjectCatalog } from './catalog.ts'
import { attempt, ObjectDatabase, type ObjectStorage, objectFailure } from './database.ts'
import { ObjectLogs } from './logs.ts'
import { reclaimLogRows } from './reclaim.ts'

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
