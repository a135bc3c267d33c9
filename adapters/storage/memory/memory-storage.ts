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
import { copyHead } from '../../../src/storage/heads.ts'
import { MemoryCatalog } from './catalog.ts'
import { type Logs, MemoryLogs, reclaim } from './logs.ts'

/** Makes a storage that packs documents and small logs once it has more logs than this. */
export function memoryStorage(unpackedMax = 4_096): Storage {
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
  readonly catalog = new MemoryCatalog()
  readonly #unpacked = new MemoryLogs()
  logs: Logs = this.#unpacked
  /** Those of the open sessions. */
  readonly notifiers = new Set<ChangeNotifier>()
  readonly #unpackedMax: number
  #packing: Promise<void> | undefined

  constructor(unpackedMax: number) {
    this.#unpackedMax = unpackedMax
  }

  commit(changes: readonly CatalogChange[]): void {
    const plan = planCommit(changes, this.catalog, this.logs)
    for (const update of plan.documents) this.catalog.apply(update)
    for (const update of plan.logs) this.logs.apply(update)
  }

  /** Loads the code that packs small streams if there are many. Resolves when that is done. */
  packIfLarge(): Promise<void> | undefined {
    if (this.#unpacked.size > this.#unpackedMax) {
      this.#packing ??= trackExternalWork(import('./packed.ts'))
        .then(({ pack }) => {
          this.logs = pack(this.catalog, this.#unpacked)
        })
        // Without the code, more memory is used. Nothing else depends on it.
        .catch(() => {})
    }
    return this.#packing
  }

  notifyOthers(author: ChangeNotifier, logId: string): void {
    for (const notifier of this.notifiers) if (notifier !== author) notifier.notify(logId)
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
    data.commit(changes)
    for (const change of changes) if ('logId' in change) data.notifyOthers(this.#notifier, change.logId)
    // Waits, although the changes are made, so that objects do not become many before they can be packed.
    await data.packIfLarge()
  }

  async head(logId: string): Promise<Head | undefined> {
    const head = this.#open().logs.headOf(logId)
    return head && copyHead(head)
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
    if (this.#data.notifiers.size > 1) this.#data.notifyOthers(this.#notifier, request.logId)
    return DONE
  }

  async read(logId: string, range: ReadRange): Promise<StoredBlock[]> {
    return this.#open().logs.read(logId, range)
  }

  async reclaim(limits: ReclaimLimits): Promise<Reclaimed> {
    return reclaim(this.#open().logs, limits)
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
