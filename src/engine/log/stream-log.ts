import type { AppendBatch } from '../../model/append-input.ts'
import type { RedactedKey } from '../../model/redacted-key.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Head, StorageSession, StoredBlock } from '../../storage/contract.ts'
import type { StreamDocument } from '../../storage/documents.ts'
import { RecordBatch } from '../../storage/record-batch.ts'
import type {
  AppendGroup,
  AppendListener,
  AppendSink,
  AppendTarget,
  BlockEncoder,
  WrittenAppend,
} from './append-entry.ts'
import { AppendPipeline, type AppendPipelineOptions } from './append-pipeline.ts'
import { BlockSource, type ReadAhead } from './block-source.ts'
import { closedError, conflictError, deletedError } from './errors.ts'
import { type Follower, type LiveBatch, LiveTail, type LiveTailLimits, liveBatch } from './live-tail.ts'
import type { ReadShare } from './read-budget.ts'
import type { RecordCodec } from './record-codec.ts'

const RELOADS_MAX = 10

export interface StreamLogOptions extends AppendPipelineOptions {
  readonly session: Pick<StorageSession, 'allocate' | 'append' | 'head' | 'read'>
  readonly clock: Clock
  readonly limits: LiveTailLimits
  readonly readAhead: ReadAhead
  /** See `StorageManifest`. */
  readonly readsIntoNewMemory?: boolean | undefined
  readonly loadDocument: (basin: string, stream: string) => Promise<StreamDocument | undefined>
  /** Called when an append has trimmed records. */
  readonly onTrim: () => void
  readonly onFollow: () => void
  /** Called when a log gets an append pipeline. */
  readonly onPipeline: (pipeline: AppendPipeline) => void
  readonly onDeleted: (log: StreamLog) => void
}

/**
 * One incarnation of a stream in this engine: its document, its durable head, the appends in flight and the
 * followers. An engine has at most one per log.
 */
export class StreamLog implements AppendTarget, AppendSink {
  readonly codec: RecordCodec
  readonly #options: StreamLogOptions
  /** Dropped when it is idle and another log has got one. */
  #pipeline: AppendPipeline | undefined
  /** Whether a new pipeline has to read the log before it appends. */
  #isInvalid = false
  /** Present while there are followers. */
  #live: LiveTail | undefined
  /** Replaced when the configuration changes, by this class only. */
  document: StreamDocument
  /** The durable head, as far as this engine knows. Replaced by this class only. */
  head: Head
  /**
   * Whether the log no longer exists: holders of this object end, later callers resolve the name again. Set
   * by this class only.
   */
  isDeleted = false
  /** Whether this engine deleted it. Set by this class only. */
  isDeletedHere = false
  /** Whether it was used since the cache last considered it for eviction. Set by the cache only. */
  wasUsed = false
  #leases = 0
  #isStale = false
  #isClosed = false
  #syncing: Promise<void> | undefined
  #syncAgain = false

  constructor(options: StreamLogOptions, document: StreamDocument, head: Head, codec: RecordCodec) {
    this.#options = options
    this.document = document
    this.head = head
    this.codec = codec
  }

  get isIdle(): boolean {
    return this.#leases === 0 && this.pendingAppends === 0 && this.followers === 0
  }

  get pendingAppends(): number {
    return this.codec.pending + (this.#pipeline?.pending ?? 0)
  }

  /** How many reads follow. */
  get followers(): number {
    return this.#live?.followers ?? 0
  }

  /** How many of them wait for an append. */
  get waiting(): number {
    return this.#live?.waiting ?? 0
  }

  /** Keeps this object in the cache until the returned function is called. */
  lease(): () => void {
    this.#leases++
    let leased = true
    return () => {
      if (leased) this.#leases--
      leased = false
    }
  }

  /** Appends in the order of the calls. Fails as `RecordCodec.checkKey` throws. */
  append(
    batch: AppendBatch,
    key: RedactedKey | undefined,
    listener: AppendListener,
    group?: AppendGroup,
  ): void {
    this.codec.append(batch, key, listener, group, this)
  }

  enqueue(batch: AppendBatch, listener: AppendListener, group?: AppendGroup, encode?: BlockEncoder): void {
    if (this.#isClosed) {
      listener.failed(closedError())
      return
    }
    const pipeline = this.#pipeline ?? this.#openPipeline()
    pipeline.enqueue(batch, listener, group, encode)
  }

  /** Keeps the latest appends for the follower until the returned function is called. */
  follow(follower: Follower): () => void {
    this.#live ??= new LiveTail(this.#options.limits)
    const live = this.#live
    const unfollow = live.follow(follower)
    this.#options.onFollow()
    return () => {
      unfollow()
      if (live.followers === 0 && this.#live === live) this.#live = undefined
    }
  }

  /** Returns the append that begins at exactly `seqNum`, if it is kept for followers. */
  liveBatchAt(seqNum: number): LiveBatch | undefined {
    return this.#live?.at(seqNum)
  }

  /** See `LiveTail.recordsOf`. */
  recordsOf(blocks: readonly Uint8Array[]): RecordBatch {
    return this.#live?.recordsOf(blocks) ?? RecordBatch.ofBlocks(blocks)
  }

  /** A follower has caught up. */
  forgetRead(): void {
    this.#live?.forgetRead()
  }

  /** The stored blocks, for one read. */
  blockSource(share: ReadShare): BlockSource {
    const { session, readAhead, readsIntoNewMemory } = this.#options
    return new BlockSource(session, readAhead, this.document.logId, this.codec, share, readsIntoNewMemory)
  }

  /** This engine has changed the configuration. */
  invalidate(): void {
    if (this.#pipeline === undefined) this.#isInvalid = true
    else this.#pipeline.invalidate()
  }

  /** This engine may have changed the stream: it is read again before the next use. */
  markStale(): void {
    this.#isStale = true
  }

  markDeleted(by: 'this engine' | 'another engine'): void {
    if (this.isDeleted) return
    this.isDeleted = true
    this.isDeletedHere = by === 'this engine'
    this.invalidate()
    this.wake()
    this.#options.onDeleted(this)
    void this.codec.close(this.#options.clock, deletedError)
  }

  /** Rejects further appends. Resolves when those in flight are settled. */
  async close(): Promise<void> {
    await this.codec.close(this.#options.clock, closedError)
    this.#isClosed = true
    await this.#pipeline?.settled()
  }

  /**
   * Makes `head` as recent as the storage's, without a request if only this engine can change it. False if
   * deleted.
   */
  refresh(): Promise<boolean> {
    if (this.isDeleted) return Promise.resolve(false)
    return this.#options.isShared() || this.#isStale ? this.reload() : Promise.resolve(true)
  }

  async reload(): Promise<boolean> {
    const { session, loadDocument } = this.#options
    const { logId, basin, name } = this.document
    for (let i = 0; i < RELOADS_MAX; i++) {
      const known = this.head
      const head = await session.head(logId)
      if (head === undefined) break
      if (head.epoch !== this.document.epoch) {
        const document = await loadDocument(basin, name)
        if (document?.logId !== logId) break
        this.document = document
        if (head.epoch !== document.epoch) continue
      }
      // Known before the storage was asked: it has lost appends, as a database does when a lagging replica
      // takes over. The engine continues with what is there.
      if (head.tail.seqNum < known.tail.seqNum && this.head === known) this.#rewind(head)
      else this.#advance(head)
      this.#isStale = false
      return true
    }
    if ((await session.head(logId)) !== undefined) throw conflictError()
    this.markDeleted('another engine')
    return false
  }

  /** Wakes every follower. */
  wake(): void {
    this.#live?.wake()
  }

  onIdle(isInvalid: boolean): void {
    this.#pipeline = undefined
    this.#isInvalid = isInvalid
  }

  onDurable({ block, head }: WrittenAppend): void {
    const trimmed = head.trimPoint !== this.head.trimPoint
    if (head.tail.seqNum > this.head.tail.seqNum) this.head = head
    this.#live?.publish(liveBatch(block))
    if (trimmed) this.#options.onTrim()
  }

  /** Publishes what another engine appended. One run at a time; a call during a run starts another. */
  sync(): Promise<void> {
    if (this.#syncing !== undefined) {
      this.#syncAgain = true
      return this.#syncing
    }
    this.#syncing = this.#syncWhileAsked()
    return this.#syncing
  }

  #openPipeline(): AppendPipeline {
    const pipeline = new AppendPipeline(this.#options, this)
    if (this.#isInvalid) pipeline.invalidate()
    this.#isInvalid = false
    this.#pipeline = pipeline
    this.#options.onPipeline(pipeline)
    return pipeline
  }

  async #syncWhileAsked(): Promise<void> {
    try {
      do {
        this.#syncAgain = false
        await this.#syncOnce()
        // No turn passes before `#syncing` is reset, so no call is missed.
      } while (this.#syncAgain)
    } finally {
      this.#syncing = undefined
    }
  }

  async #syncOnce(): Promise<void> {
    const { session, limits } = this.#options
    const { logId } = this.document
    const head = await session.head(logId)
    if (head === undefined) {
      this.markDeleted('another engine')
      return
    }
    const known = this.head.tail.seqNum
    if (this.followers > 0 && head.tail.seqNum > known) {
      const from = { seqNum: known }
      const bytesMax = limits.followerLagBytes
      const blocks = await session.read(logId, {
        from,
        endSeqNum: head.tail.seqNum,
        bytesMax,
        unsplit: true,
      })
      // Published first: a follower that finds the head moved and no batch returns to the storage.
      for (const block of this.#appendsOf(blocks)) {
        if (block.firstSeqNum >= known) this.#live?.publish(liveBatch(block))
      }
      // With the epoch of the configuration that is known: until a new one is read, appends conflict.
      this.#advance({ ...head, epoch: this.document.epoch })
    }
    await this.reload()
  }

  #appendsOf(blocks: readonly StoredBlock[]): readonly StoredBlock[] {
    try {
      return this.codec.split(blocks)
    } catch {
      // Followers read the damaged block from the storage, and reject.
      return []
    }
  }

  #rewind(head: Head): void {
    this.head = head
    this.#live?.clear()
    this.wake()
  }

  #advance(head: Head): void {
    const known = this.head
    if (head.tail.seqNum < known.tail.seqNum) return
    this.head = head
    if (head.tail.seqNum > known.tail.seqNum) this.wake()
  }
}
