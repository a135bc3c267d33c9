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
import { StorageFailure } from '../../../src/storage/errors.ts'
import { Catalog } from './catalog.ts'
import { Logs } from './logs.ts'

/**
 * A storage that keeps everything in the returned object: for tests, caches, and pages that may lose their
 * data.
 *
 * Several engines may have one `memory()` open at the same time, and each sees the changes of the others. The
 * data lives as long as the object: an engine that opens it again finds the same data, as after a restart.
 *
 * Memory: what is stored, about 300 bytes per append, 2 % of large appends for finding single records, and
 * the catalog's keys twice.
 */
export function memory(): Storage {
  const data = new MemoryData()
  return {
    manifest: { name: 'memory', durability: 'none', shared: true, notifications: 'reliable' },
    async open({ onLogChanged }) {
      return new MemorySession(data, onLogChanged)
    },
  }
}

/** Returned by every append, which is frequent. */
const DONE: Promise<void> = Promise.resolve()

/** The data of one `memory()`, shared by its sessions. */
class MemoryData {
  readonly catalog = new Catalog()
  readonly logs = new Logs()
  readonly sessions = new Set<MemorySession>()

  /** Applies the changes in order. Undoes the earlier ones if one fails. */
  commit(changes: readonly CatalogChange[]): void {
    const undo: (() => void)[] = []
    try {
      for (const change of changes) undo.push(this.#apply(change))
    } catch (error) {
      for (const undoOne of undo.reverse()) undoOne()
      throw error
    }
  }

  notifyOthers(author: MemorySession, logId: string): void {
    for (const session of this.sessions) if (session !== author) session.logChanged(logId)
  }

  #apply(change: CatalogChange): () => void {
    switch (change.kind) {
      case 'put':
        return this.catalog.put(change.collection, change.key, change.value, change.expect)
      case 'delete':
        return this.catalog.delete(change.collection, change.key, change.expect)
      case 'create-log':
        return this.logs.create(change.logId, change.epoch, change.createdAt, change.start)
      case 'set-epoch':
        return this.logs.setEpoch(change.logId, change.epoch)
      case 'delete-log':
        return this.logs.delete(change.logId, change.expectSeqNum)
      case 'check':
        this.catalog.check(change.collection, change.key, change.expect)
        return () => {}
    }
  }
}

/**
 * One engine's access to the data. Each call does its work before it returns its promise, so calls take
 * effect in the order they are made, and none is ever in flight.
 */
class MemorySession implements StorageSession {
  readonly #data: MemoryData
  readonly #onLogChanged: (logId: string) => void
  /** Logs with a pending notification. */
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
    for (const change of changes) if ('logId' in change) this.#data.notifyOthers(this, change.logId)
  }

  async head(logId: string): Promise<Head | undefined> {
    return this.#open().logs.head(logId)
  }

  allocate(logId: string, bytes: number): Uint8Array {
    return this.#data.logs.allocate(logId, bytes)
  }

  append(request: AppendRequest): Promise<void> {
    try {
      this.#open().logs.append(request)
    } catch (error) {
      return Promise.reject(error)
    }
    if (this.#data.sessions.size > 1) this.#data.notifyOthers(this, request.logId)
    return DONE
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

  /**
   * Schedules a notification, in a microtask of its own: a callback that throws must not suppress the others.
   */
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
