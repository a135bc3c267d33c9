import type { StreamRef } from '../../model/names.ts'
import { LazyModule } from '../../runtime/lazy-module.ts'
import type { Head, StorageSession } from '../../storage/contract.ts'
import type { StreamDocument } from '../../storage/documents.ts'
import { emptyHead } from '../../storage/heads.ts'
import type { AppendPipeline } from './append-pipeline.ts'
import { ReadAhead } from './block-source.ts'
import { ChangeWatch, type ChangeWatchOptions } from './change-watch.ts'
import type { Eviction } from './eviction.ts'
import type { ReadBudget } from './read-budget.ts'
import { PLAIN, type RecordCodec } from './record-codec.ts'
import { type StreamLease, StreamLog, type StreamLogOptions } from './stream-log.ts'

const LOADS_MAX = 10
/**
 * No stream is evicted up to this part of the cached streams: what `eviction.ts` keeps of streams that are
 * only created. Its code is loaded beyond that.
 */
const KEPT_DIVISOR = 80

export interface StreamCacheOptions
  extends Omit<StreamLogOptions, 'readAhead' | 'onDeleted' | 'onPipeline'>,
    ChangeWatchOptions {
  readonly session: StorageSession
  readonly readBudget: ReadBudget
  readonly limits: StreamLogOptions['limits'] & { readonly cachedStreams: number }
  /** Whether a log that can expire may have done so: its document is then loaded again. */
  readonly isOverdue: (log: StreamLog) => boolean
  /** Returns the codec of a log, before it enters the cache. */
  readonly codecFor: (document: StreamDocument) => Promise<RecordCodec>
}

/** How a stream was changed by this engine; `uncertain` when the change failed but may have happened. */
export type LogChange = 'deleted' | 'reconfigured' | 'uncertain'

/** The logs in use and those used recently, by name and by id. Rows of `Eviction` hold the others. */
export class StreamCache {
  readonly #options: StreamCacheOptions
  readonly #logOptions: StreamLogOptions
  readonly #watch: ChangeWatch
  /** The logs by basin, then by stream: joining the names would take longer than both look-ups. */
  readonly #byName = new Map<string, Map<string, StreamLog>>()
  readonly #byId = new Map<string, StreamLog>()
  readonly #eviction: LazyModule<Eviction>
  readonly #loading = new Set<Loading>()
  /** Set when the engine begins to close. */
  #drained: Promise<unknown> | undefined
  /** Stays even while it is idle. */
  #newestPipeline: AppendPipeline | undefined

  constructor(options: StreamCacheOptions) {
    this.#options = options
    this.#eviction = new LazyModule('eviction code', async () => {
      const { Eviction } = await import('./eviction.ts')
      return new Eviction(
        options.limits.cachedStreams,
        this.#byId,
        (document, head) => this.#add(document, head, PLAIN),
        (log) => this.#remove(log),
      )
    })
    this.#watch = new ChangeWatch(options, () => this.#byId.values())
    this.#logOptions = {
      ...options,
      readAhead: new ReadAhead(options.readBudget),
      onFollow: () => {
        this.#watch.poll()
        options.onFollow()
      },
      onPipeline: (pipeline) => {
        this.#newestPipeline?.endWhenIdle()
        this.#newestPipeline = pipeline
      },
      onDeleted: (log) => this.#remove(log),
    }
  }

  /** Returns a cached log. On a shared storage another engine may have deleted it, which using it reveals. */
  get(ref: StreamRef): StreamLog | undefined {
    const log = this.#byName.get(ref.basin)?.get(ref.stream) ?? this.#eviction.part?.restore(ref)
    if (!log || log.isDeleted) return undefined
    if (log.document.expiry !== undefined && this.#options.isOverdue(log)) return undefined
    log.wasUsed = true
    return log
  }

  /**
   * Resolves to the log of a stream, from the cache or loaded, or else of the stream that `create` creates.
   * Undefined if `create` resolves to undefined, or the stream was changed meanwhile. Leased at once:
   * otherwise it might be evicted, and loaded a second time, before its first use. Rejects with `unavailable`
   * if many streams are cached and the code of eviction cannot be loaded.
   */
  async findOrCreate(
    ref: StreamRef,
    create: () => Promise<StreamDocument | undefined>,
  ): Promise<StreamLease | undefined> {
    const cached = this.get(ref)
    if (cached !== undefined) return cached.lease()
    if (this.#byId.size * KEPT_DIVISOR > this.#options.limits.cachedStreams) await this.#eviction.load()
    const loading: Loading = { ref, isStale: false }
    this.#loading.add(loading)
    try {
      return (await this.#load(loading)) ?? (await this.#create(loading, create))
    } finally {
      this.#loading.delete(loading)
    }
  }

  /** Makes a log that nothing finds, for the stream that is being created with it. */
  async detached(document: StreamDocument, head: Head): Promise<StreamLog> {
    const codec = await this.#options.codecFor(document)
    const ignore = () => {}
    const options = {
      ...this.#logOptions,
      onPipeline: ignore,
      onDeleted: ignore,
      onTrim: ignore,
      onLost: ignore,
    }
    return new StreamLog(options, document, head, codec)
  }

  /** The number of streams, with those that have rows. */
  get size(): number {
    return this.#byId.size + (this.#eviction.part?.rows ?? 0)
  }

  /** The logs that are objects, which include all in use. */
  all(): Iterable<StreamLog> {
    return this.#byId.values()
  }

  get hasFollowers(): boolean {
    for (const { followers } of this.#byId.values()) if (followers > 0) return true
    return false
  }

  /** Reports a change that this engine made or tried to make. */
  changed(ref: StreamRef, logId: string, change: LogChange): void {
    this.#eviction.part?.forget(ref)
    for (const loading of this.#loading) {
      if (loading.ref.basin === ref.basin && loading.ref.stream === ref.stream) loading.isStale = true
    }
    const log = this.#byId.get(logId)
    if (change === 'deleted') log?.markDeleted(true)
    else if (log) {
      log.invalidate()
      log.markStale()
      if (change === 'uncertain') this.#watch.sync(log)
    }
  }

  /** Reports that another engine may have changed a log. */
  hint(logId: string): void {
    const log = this.#byId.get(logId)
    if (log) this.#watch.sync(log)
    else this.#eviction.part?.dropRows()
  }

  /** Reports that the storage may have lost appends: what is in use is compared, the rest is forgotten. */
  historyChanged(): void {
    for (const loading of this.#loading) loading.isStale = true
    this.#eviction.part?.dropRows()
    for (const log of [...this.#byId.values()]) {
      if (log.isIdle) this.#remove(log)
      else {
        log.markStale()
        this.#watch.sync(log)
      }
    }
  }

  /** Wakes every follower, waits until `drained` resolves, which ends all appends, and empties the cache. */
  async close(drained: Promise<unknown>): Promise<void> {
    this.#watch.close()
    this.#drained = drained
    for (const log of this.#byId.values()) {
      log.wake()
      log.close(drained)
    }
    await drained
    this.#eviction.part?.dropRows()
    this.#byName.clear()
    this.#byId.clear()
  }

  async #load(loading: Loading): Promise<StreamLease | undefined> {
    const { session, loadDocument, codecFor } = this.#options
    const { ref } = loading
    for (let i = 0; i < LOADS_MAX; i++) {
      loading.isStale = false
      const document = await loadDocument(ref.basin, ref.stream)
      if (document === undefined) return undefined
      const codec = await codecFor(document)
      const head = await session.head(document.logId)
      // Deleted or reconfigured meanwhile: load it again.
      if (head === undefined || head.epoch !== document.epoch || loading.isStale) continue
      const known = this.#byId.get(document.logId) ?? this.#eviction.part?.restore(ref)
      if (known?.isDeleted) continue
      known?.noteReadAt(document.readAt)
      return (known ?? this.#add(document, head, codec)).lease()
    }
    return undefined
  }

  /** Creates the log. It is empty, so it is not read. */
  async #create(
    loading: Loading,
    create: () => Promise<StreamDocument | undefined>,
  ): Promise<StreamLease | undefined> {
    loading.isStale = false
    const document = await create()
    if (document === undefined) return undefined
    const codec = await this.#options.codecFor(document)
    if (loading.isStale || this.#byId.has(document.logId)) return undefined
    const head = emptyHead(document.epoch, document.createdAt)
    return this.#add(document, head, codec, true).lease()
  }

  #add(document: StreamDocument, head: Head, codec: RecordCodec, isNew = false): StreamLog {
    const log = new StreamLog(this.#logOptions, document, head, codec)
    const { basin, name, logId } = document
    const streams = this.#byName.get(basin) ?? new Map<string, StreamLog>()
    this.#byName.set(basin, streams.set(name, log))
    this.#byId.set(logId, log)
    this.#eviction.part?.makeRoom(log, isNew)
    if (this.#drained !== undefined) log.close(this.#drained)
    return log
  }

  #remove(log: StreamLog): void {
    const { basin, name, logId } = log.document
    const streams = this.#byName.get(basin)
    if (streams?.get(name) === log) streams.delete(name)
    if (streams?.size === 0) this.#byName.delete(basin)
    if (this.#byId.get(logId) === log) this.#byId.delete(logId)
    this.#eviction.part?.release(log)
  }
}

interface Loading {
  readonly ref: StreamRef
  /** Set when the stream is changed while it is loaded. */
  isStale: boolean
}
