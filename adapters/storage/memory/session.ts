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
  StorageSession,
  StoredBlock,
} from '../../../src/storage/contract.ts'
import { storageClosed } from '../../../src/storage/errors.ts'
import { ChangeNotifier } from '../../../src/storage/session-calls.ts'
import { MemoryCatalog } from './catalog.ts'
import { MemoryLogs } from './logs.ts'

/** The data of one `memory()`, shared by its sessions. */
export class MemoryData {
  readonly catalog = new MemoryCatalog()
  readonly logs = new MemoryLogs()
  /** Those of the open sessions. */
  readonly notifiers = new Set<ChangeNotifier>()

  notifyOthers(author: ChangeNotifier, logId: string): void {
    for (const notifier of this.notifiers) if (notifier !== author) notifier.notify(logId)
  }
}

/** Returned by every append, which is frequent. */
const DONE: Promise<void> = Promise.resolve()

/**
 * One engine's access to the data. Each call does its work before it returns its promise, so calls take
 * effect in the order they are made, and none is ever in flight.
 */
export class MemorySession implements StorageSession {
  readonly #data: MemoryData
  readonly #notifier: ChangeNotifier
  #isClosed = false

  constructor(data: MemoryData, onLogChanged: (logId: string) => void) {
    this.#data = data
    this.#notifier = new ChangeNotifier(onLogChanged)
    data.notifiers.add(this.#notifier)
  }

  async get(collection: Collection, key: string): Promise<Document | undefined> {
    return this.#open().catalog.get(collection, key)
  }

  async list(collection: Collection, range: ListRange): Promise<Document[]> {
    return this.#open().catalog.list(collection, range)
  }

  async commit(changes: readonly CatalogChange[]): Promise<void> {
    const data = this.#open()
    const plan = planCommit(changes, data.catalog, data.logs)
    for (const update of plan.documents) data.catalog.apply(update)
    for (const update of plan.logs) data.logs.apply(update)
    for (const change of changes) if ('logId' in change) data.notifyOthers(this.#notifier, change.logId)
  }

  async head(logId: string): Promise<Head | undefined> {
    return this.#open().logs.headOf(logId)
  }

  append(request: AppendRequest): Promise<void> {
    try {
      const data = this.#open()
      data.logs.append(request)
      data.notifyOthers(this.#notifier, request.logId)
      return DONE
    } catch (error) {
      return Promise.reject(error)
    }
  }

  async read(logId: string, range: ReadRange): Promise<StoredBlock[]> {
    return this.#open().logs.read(logId, range)
  }

  async reclaim(limits: ReclaimLimits): Promise<Reclaimed> {
    return this.#open().logs.reclaim(limits)
  }

  async measure(logIds: readonly string[]): Promise<number[]> {
    const { logs } = this.#open()
    return logIds.map((logId) => logs.meteredBytes(logId))
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#notifier.clear()
    this.#data.notifiers.delete(this.#notifier)
  }

  #open(): MemoryData {
    if (this.#isClosed) throw storageClosed()
    return this.#data
  }
}
