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
import { StorageFailure } from '../../../src/storage/errors.ts'
import type { MemoryData } from './data.ts'

/**
 * One engine's access to the data. Every call does its work before it returns its promise, so calls take effect in the order
 * in which they are made, and nothing is ever in flight.
 */
export class MemorySession implements StorageSession {
  readonly #data: MemoryData
  readonly #onLogChanged: (logId: string) => void
  /** Logs whose change is about to be told. */
  readonly #changed = new Set<string>()
  #closed = false

  constructor(data: MemoryData, onLogChanged: (logId: string) => void) {
    this.#data = data
    this.#onLogChanged = onLogChanged
    data.sessions.add(this)
  }

  async get(collection: Collection, key: string): Promise<Document | undefined> {
    return this.#open().catalog.get(collection, key)
  }

  async list(collection: Collection, range: ListRange): Promise<Document[]> {
    return this.#open().catalog.list(collection, range)
  }

  async commit(changes: readonly CatalogChange[]): Promise<void> {
    this.#open().commit(changes)
    for (const change of changes) if ('logId' in change) this.#data.tellOthers(this, change.logId)
  }

  async head(logId: string): Promise<Head | undefined> {
    return this.#open().logs.head(logId)
  }

  async append(request: AppendRequest): Promise<void> {
    this.#open().logs.append(request)
    this.#data.tellOthers(this, request.logId)
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
    this.#closed = true
    this.#changed.clear()
    this.#data.sessions.delete(this)
  }

  /** Another session changed a log. A microtask for each log, so that a callback that throws keeps none from the others. */
  logChanged(logId: string): void {
    if (this.#changed.has(logId)) return
    this.#changed.add(logId)
    queueMicrotask(() => {
      if (this.#changed.delete(logId)) this.#onLogChanged(logId)
    })
  }

  #open(): MemoryData {
    if (this.#closed) throw new StorageFailure('closed', 'the storage is closed', { nothingWritten: true })
    return this.#data
  }
}
