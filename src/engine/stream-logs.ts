import type { Head, StorageSession } from '../storage/contract.ts'
import type { Allowance } from './allowance.ts'
import type { Catalog } from './catalog.ts'
import type { StreamRef } from './context.ts'
import { type StreamDocument, streamKey } from './documents.ts'
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

/** A stream that stays the one object for its log until it is released. */
export interface HeldStream {
  readonly log: StreamLog
  readonly release: () => void
}

/** The stream of one more session, which lasts until it is released. Rejects with 429 `rate_limited` when there are too many. */
export async function opened(sessions: Allowance, hold: () => Promise<HeldStream>): Promise<HeldStream> {
  const leave = sessions.take(1)
  try {
    const { log, release } = await hold()
    return {
      log,
      release: () => {
        release()
        leave()
      },
    }
  } catch (error) {
    leave()
    throw error
  }
}

/** The streams at hand, by name and by log. Idle ones leave when there are too many. */
export class StreamLogs {
  readonly #session: StorageSession
  readonly #catalog: Catalog
  readonly #settings: Settings
  readonly #onTrim: () => void
  /** In the order of last use. */
  readonly #byKey = new Map<string, StreamLog>()
  readonly #byId = new Map<string, StreamLog>()
  readonly #loading = new Set<Loading>()
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

  /**
   * The stream of that name, held until `release` is called, or undefined when the storage has none. Held from the moment it is at hand: else
   * it might leave before its first user has it, and a second object for its log come.
   */
  async find(ref: StreamRef): Promise<HeldStream | undefined> {
    const known = this.atHand(ref)
    if (known !== undefined) return held(known)
    const loading: Loading = { key: streamKey(ref.basin, ref.stream), isStale: false }
    this.#loading.add(loading)
    try {
      return await this.#load(ref, loading)
    } finally {
      this.#loading.delete(loading)
    }
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

  /** This engine deleted the stream or changed its configuration, or tried to and does not know what came of it. */
  onChanged(ref: StreamRef, logId: string, change: 'deleted' | 'reconfigured' | 'uncertain'): void {
    const key = streamKey(ref.basin, ref.stream)
    for (const loading of this.#loading) if (loading.key === key) loading.isStale = true
    const log = this.#byId.get(logId)
    if (log === undefined) return
    if (change === 'deleted') log.markDeleted('this engine')
    else log.invalidate()
    if (change !== 'uncertain') return
    log.doubt()
    this.#sync(log)
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

  async #load(ref: StreamRef, loading: Loading): Promise<HeldStream | undefined> {
    for (let i = 0; i < LOADS_MAX; i++) {
      loading.isStale = false
      const document = (await this.#catalog.stream(ref.basin, ref.stream))?.value
      if (document === undefined) return undefined
      const head = await storageError(this.#session.head(document.logId))
      // A stream that was deleted, or reconfigured, meanwhile is looked up again.
      if (head === undefined || head.epoch !== document.epoch || loading.isStale) continue
      const known = this.#byId.get(document.logId)
      if (known?.isDeleted) continue
      return held(known ?? this.#add(document, head))
    }
    return undefined
  }

  #add(document: StreamDocument, head: Head): StreamLog {
    const engine = {
      session: this.#session,
      catalog: this.#catalog,
      settings: this.#settings,
      onTrim: this.#onTrim,
      onDeleted: (gone: StreamLog) => this.forget(gone),
    }
    const log = new StreamLog(engine, document, head)
    this.#byKey.set(streamKey(document.basin, document.name), log)
    this.#byId.set(document.logId, log)
    this.#evict()
    return log
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
  readonly key: string
  /** Set when the stream changed while it was being loaded. */
  isStale: boolean
}

function held(log: StreamLog): HeldStream {
  return { log, release: log.pin() }
}

function* firstOf<Item>(items: Iterable<Item>, count: number): Generator<Item> {
  let left = count
  for (const item of items) {
    if (left-- <= 0) return
    yield item
  }
}
