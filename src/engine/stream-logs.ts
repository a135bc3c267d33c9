import type { StorageSession } from '../storage/contract.ts'
import type { Catalog } from './catalog.ts'
import type { StreamRef } from './context.ts'
import { streamKey } from './documents.ts'
import { storageError } from './errors.ts'
import type { Settings } from './options.ts'
import { StreamLog } from './stream-log.ts'

const LOADS_MAX = 10
/** How often followed logs are looked at when the storage's notifications may get lost, in milliseconds. */
const POLL_MS_WHEN_HINTED = 5_000
const POLL_MS_WHEN_SILENT = 1_000
/** When a look at a changed log that failed is taken again, in milliseconds. */
const SYNC_RETRY_MS = 1_000
/** How many streams are looked at to make room for one more. */
const EVICTION_SCAN_MAX = 64

/** The streams at hand, by name and by log. Idle ones leave when there are too many. */
export class StreamLogs {
  readonly #session: StorageSession
  readonly #catalog: Catalog
  readonly #settings: Settings
  readonly #onTrim: () => void
  /** In the order of last use. */
  readonly #byKey = new Map<string, StreamLog>()
  readonly #byId = new Map<string, StreamLog>()
  readonly #loading = new Map<string, Loading>()
  /** Logs of which a change could not be looked at. */
  readonly #unsynced = new Set<StreamLog>()
  #cancelRetry: (() => void) | undefined
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
    const underWay = this.#loading.get(key)
    if (underWay !== undefined) return underWay.log
    const loading: Loading = { isStale: false, log: Promise.resolve(undefined) }
    this.#loading.set(key, loading)
    loading.log = this.#load(ref, loading).finally(() => this.#loading.delete(key))
    return loading.log
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

  /** This engine deleted the stream or changed its configuration. */
  onChanged(ref: StreamRef, logId: string, change: 'deleted' | 'reconfigured'): void {
    const loading = this.#loading.get(streamKey(ref.basin, ref.stream))
    if (loading !== undefined) loading.isStale = true
    const log = this.#byId.get(logId)
    if (change === 'deleted') log?.markDeleted('this engine')
    else log?.invalidate()
  }

  /** A hint of the storage. */
  onLogChanged(logId: string): void {
    const log = this.#byId.get(logId)
    if (log !== undefined) this.#sync(log)
  }

  #sync(log: StreamLog): void {
    log.sync().then(
      () => this.#unsynced.delete(log),
      (error: unknown) => {
        this.#settings.onBackgroundError(error)
        this.#unsynced.add(log)
        if (!this.#closed)
          this.#cancelRetry ??= this.#settings.clock.schedule(SYNC_RETRY_MS, () => this.#retry())
      },
    )
  }

  #retry(): void {
    this.#cancelRetry = undefined
    for (const log of this.#unsynced) this.#sync(log)
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
      for (const log of followed) this.#sync(log)
      this.watch()
    })
  }

  /** Wakes every follower, waits for appends in flight, and forgets everything. */
  async close(): Promise<void> {
    this.#closed = true
    this.#cancelPoll?.()
    this.#cancelRetry?.()
    const logs = [...this.#byId.values()]
    for (const log of logs) log.live.wake()
    await Promise.all(logs.map((log) => log.drain()))
    this.#byKey.clear()
    this.#byId.clear()
    this.#unsynced.clear()
  }

  async #load(ref: StreamRef, loading: Loading): Promise<StreamLog | undefined> {
    for (let i = 0; i < LOADS_MAX; i++) {
      loading.isStale = false
      const document = (await this.#catalog.stream(ref.basin, ref.stream))?.value
      if (document === undefined) return undefined
      const known = this.#byId.get(document.logId)
      if (known !== undefined && !known.isDeleted && !loading.isStale) return known
      const head = await storageError(this.#session.head(document.logId))
      // A stream that was deleted, or reconfigured, between the two calls is looked up again.
      if (head === undefined || head.epoch !== document.epoch || loading.isStale) continue
      const engine = {
        session: this.#session,
        catalog: this.#catalog,
        settings: this.#settings,
        onTrim: this.#onTrim,
        onDeleted: (gone: StreamLog) => this.forget(gone),
      }
      const log = new StreamLog(engine, document, head)
      this.#byKey.set(streamKey(ref.basin, ref.stream), log)
      this.#byId.set(document.logId, log)
      this.#evict()
      return log
    }
    return undefined
  }

  /** Lets go of the idle ones among the longest unused; busy ones count as used. */
  #evict(): void {
    const oldest = [...firstOf(this.#byKey, Math.min(EVICTION_SCAN_MAX, this.#byKey.size - 1))]
    for (const [key, log] of oldest) {
      if (this.#byKey.size <= this.#settings.limits.cachedStreams) return
      this.#byKey.delete(key)
      if (log.isIdle) this.#byId.delete(log.document.logId)
      else this.#byKey.set(key, log)
    }
  }
}

interface Loading {
  /** Set when the stream changed while it was being loaded. */
  isStale: boolean
  log: Promise<StreamLog | undefined>
}

function* firstOf<Item>(items: Iterable<Item>, count: number): Generator<Item> {
  let left = count
  for (const item of items) {
    if (left-- <= 0) return
    yield item
  }
}
