import { trackExternalWork } from '../../../src/runtime/clock.ts'
import { ChangeNotifier } from '../../../src/storage/change-notifier.ts'
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
import { storageClosed } from '../../../src/storage/errors.ts'
import { MemoryCatalog } from './catalog.ts'
import { MemoryLogs } from './logs.ts'

/** The most documents of a collection, and logs, that have objects. Beyond it, idle ones are packed. */
const UNPACKED_MAX = 4_096

/** Makes a storage for `memory`. */
export function memoryStorage(unpackedMax = UNPACKED_MAX): Storage {
  const data = new MemoryData(unpackedMax)
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
  readonly catalog: MemoryCatalog
  readonly logs: MemoryLogs
  readonly sessions = new Set<MemorySession>()
  #code: typeof import('./packed.ts') | undefined
  #loading: Promise<void> | undefined

  constructor(unpackedMax: number) {
    this.catalog = new MemoryCatalog(unpackedMax)
    this.logs = new MemoryLogs(unpackedMax)
  }

  /** Packs what is idle if there is much. Resolves when the code for it is loaded, if that is missing. */
  pack(): Promise<void> | undefined {
    if (this.#code === undefined) {
      if (this.catalog.isLarge || this.logs.isLarge) this.#loading ??= this.#load()
      return this.#loading
    }
    const { PackedDocuments } = this.#code
    if (this.catalog.isLarge) this.catalog.pack(() => new PackedDocuments())
    return undefined
  }

  async #load(): Promise<void> {
    try {
      this.#code = await trackExternalWork(import('./packed.ts'))
      this.logs.pack(new this.#code.PackedLogs())
      this.pack()
    } catch {
      // Without the code, more memory is used. Nothing else depends on it.
    }
  }

  commit(changes: readonly CatalogChange[]): void {
    const plan = planCommit(changes, this.catalog, this.logs)
    for (const update of plan.documents) this.catalog.apply(update)
    for (const update of plan.logs) this.logs.apply(update)
  }

  notifyOthers(author: MemorySession, logId: string): void {
    for (const session of this.sessions) if (session !== author) session.logChanged(logId)
  }
}

/**
 * One engine's access to the data. Each call does its work before it returns its promise, so calls take
 * effect in the order they are made, and none is ever in flight.
 */
class MemorySession implements StorageSession {
  readonly #data: MemoryData
  readonly #notifier: ChangeNotifier
  #isClosed = false

  constructor(data: MemoryData, onLogChanged: (logId: string) => void) {
    this.#data = data
    this.#notifier = new ChangeNotifier(onLogChanged)
    data.sessions.add(this)
  }

  async get(collection: Collection, key: string): Promise<Document | undefined> {
    return this.#open().catalog.get(collection, key)
  }

  async list(collection: Collection, range: ListRange): Promise<Document[]> {
    return this.#open().catalog.list(collection, range)
  }

  async commit(changes: readonly CatalogChange[]): Promise<void> {
    const data = this.#open()
    data.commit(changes)
    for (const change of changes) if ('logId' in change) this.#data.notifyOthers(this, change.logId)
    // Waits, although the changes are made, so that documents do not become many before they can be packed.
    await data.pack()
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
    this.#isClosed = true
    this.#notifier.clear()
    this.#data.sessions.delete(this)
  }

  logChanged(logId: string): void {
    this.#notifier.notify(logId)
  }

  #open(): MemoryData {
    if (this.#isClosed) throw storageClosed()
    return this.#data
  }
}
