import type { StorageSession } from '../storage/contract.ts'
import type { Catalog } from './catalog.ts'
import type { StreamRef } from './context.ts'
import { streamKey } from './documents.ts'
import type { Settings } from './options.ts'
import { storageError } from './storage-errors.ts'
import { StreamLog } from './stream-log.ts'

const LOADS_MAX = 10
/** How often followed logs are looked at when the storage's notifications may get lost, in milliseconds. */
const POLL_MS_WHEN_HINTED = 5_000
const POLL_MS_WHEN_SILENT = 1_000

/** The streams at hand, by name and by log. Idle ones leave when there are too many. */
export class StreamLogs {
  readonly #session: StorageSession
  readonly #catalog: Catalog
  readonly #settings: Settings
  readonly #onTrim: () => void
  /** In the order of last use. */
  readonly #byKey = new Map<string, StreamLog>()
  readonly #byId = new Map<string, StreamLog>()
  readonly #loading = new Map<string, Promise<StreamLog | undefined>>()
  #cancelPoll: (() => void) | undefined
  #closed = false

  constructor(session: StorageSession, catalog: Catalog, settings: Settings, onTrim: () => void) {
    this.#session = session
    this.#catalog = catalog
    this.#settings = settings
    this.#onTrim = onTrim
  }

  /** The stream of that name if it was used lately. On a shared storage it may have been deleted since: using it tells. */
  atHand(ref: StreamRef): StreamLog | undefined {
    const key = streamKey(ref.basin, ref.stream)
    const known = this.#byKey.get(key)
    if (known === undefined || known.isDeleted) return undefined
    this.#byKey.delete(key)
    this.#byKey.set(key, known)
    return known
  }

  /** The stream of that name, or undefined when the storage has none. */
  find(ref: StreamRef): Promise<StreamLog | undefined> {
    const known = this.atHand(ref)
    if (known !== undefined) return Promise.resolve(known)
    const key = streamKey(ref.basin, ref.stream)
    let loading = this.#loading.get(key)
    if (loading === undefined) {
      loading = this.#load(ref).finally(() => this.#loading.delete(key))
      this.#loading.set(key, loading)
    }
    return loading
  }

  byId(logId: string): StreamLog | undefined {
    return this.#byId.get(logId)
  }

  all(): Iterable<StreamLog> {
    return this.#byId.values()
  }

  /** Drops a stream that is gone, so that its name is looked up again. */
  forget(log: StreamLog): void {
    const key = streamKey(log.document.basin, log.document.name)
    if (this.#byKey.get(key) === log) this.#byKey.delete(key)
    if (this.#byId.get(log.document.logId) === log) this.#byId.delete(log.document.logId)
  }

  /** A hint of the storage. */
  onLogChanged(logId: string): void {
    this.#byId.get(logId)?.sync().catch(this.#settings.onBackgroundError)
  }

  /** Called when a session begins to follow: from now on lost notifications are made up for. */
  watch(): void {
    const { shared, notifications } = this.#settings.storage.manifest
    if (!shared || notifications === 'reliable' || this.#cancelPoll !== undefined || this.#closed) return
    const delay = notifications === 'hint' ? POLL_MS_WHEN_HINTED : POLL_MS_WHEN_SILENT
    this.#cancelPoll = this.#settings.clock.schedule(delay, () => {
      this.#cancelPoll = undefined
      const followed = [...this.all()].filter((log) => log.live.followers > 0)
      if (followed.length === 0) return
      for (const log of followed) log.sync().catch(this.#settings.onBackgroundError)
      this.watch()
    })
  }

  /** Wakes every follower, waits for appends in flight, and forgets everything. */
  async close(): Promise<void> {
    this.#closed = true
    this.#cancelPoll?.()
    const logs = [...this.#byId.values()]
    for (const log of logs) log.live.wake()
    await Promise.all(logs.map((log) => log.drain()))
    this.#byKey.clear()
    this.#byId.clear()
  }

  async #load(ref: StreamRef): Promise<StreamLog | undefined> {
    for (let i = 0; i < LOADS_MAX; i++) {
      const document = (await this.#catalog.stream(ref.basin, ref.stream))?.value
      if (document === undefined) return undefined
      const known = this.#byId.get(document.logId)
      if (known !== undefined && !known.isDeleted) return known
      const head = await storageError(this.#session.head(document.logId))
      // A stream that was deleted, or reconfigured, between the two calls is looked up again.
      if (head === undefined || head.epoch !== document.epoch) continue
      const engine = {
        session: this.#session,
        catalog: this.#catalog,
        settings: this.#settings,
        onTrim: this.#onTrim,
      }
      const log = new StreamLog(engine, document, head)
      this.#byKey.set(streamKey(ref.basin, ref.stream), log)
      this.#byId.set(document.logId, log)
      this.#evict()
      return log
    }
    return undefined
  }

  #evict(): void {
    const excess = this.#byKey.size - this.#settings.limits.cachedStreams
    if (excess <= 0) return
    let seen = 0
    for (const log of this.#byKey.values()) {
      // The one just added is the last; a bounded look keeps a crowd of busy streams from costing every newcomer a full scan.
      if (++seen > EVICTION_SCAN_MAX || seen > this.#byKey.size - 1) return
      if (!log.isIdle) continue
      this.forget(log)
      return
    }
  }
}

const EVICTION_SCAN_MAX = 64
