import type { AppendBatch } from '../../model/append-input.ts'
import type { EncryptionKey } from '../../model/encryption-key.ts'
import type { HeadwaterError } from '../../model/errors.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Head, ReadRange, StorageSession, StoredBlock } from '../../storage/contract.ts'
import type { StreamDocument } from '../../storage/documents.ts'
import { identityOf } from '../../storage/heads.ts'
import { conflictError, lostRecordsError } from '../errors.ts'
import { AppendPipeline, type AppendPipelineOptions } from './append-pipeline.ts'
import type { AppendGroup, AppendListener, AppendTarget, WriteAttempt } from './append-recovery.ts'
import { type Follower, type LiveBatch, LiveTail, type LiveTailLimits, liveBatch } from './live-tail.ts'
import type { RecordCodec } from './record-codec.ts'

const RELOADS_MAX = 10
/** The assumed size of a record of which nothing is known, in bytes. */
const RECORD_BYTES = 1_024

export interface StreamLogOptions extends AppendPipelineOptions {
  readonly session: Pick<StorageSession, 'append' | 'head' | 'read'>
  readonly clock: Clock
  readonly limits: LiveTailLimits
  readonly loadDocument: (basin: string, stream: string) => Promise<StreamDocument | undefined>
  readonly onTrim: () => void
  readonly onFollow: () => void
  readonly onDeleted: (log: StreamLog) => void
  /** Receives a log that has ended because the storage has lost records of it. */
  readonly onLost: (log: StreamLog) => void
}

/** A stream that stays open until it is released. */
export interface StreamLease {
  readonly log: StreamLog
  readonly release: () => void
}

/**
 * One incarnation of a stream in this engine: its document, its durable head, the appends in flight and the
 * followers. An engine has at most one per log.
 */
export class StreamLog implements AppendTarget {
  readonly codec: RecordCodec
  readonly #options: StreamLogOptions
  readonly #pipeline: AppendPipeline
  readonly #live: LiveTail
  /** Replaced when the configuration changes, by this class only. */
  document: StreamDocument
  /** The durable head, as far as this engine knows. Replaced by this class only. */
  head: Head
  /** Whether the log no longer exists: holders end, others resolve the name again. Set by this class only. */
  isDeleted = false
  /** Whether this engine deleted it. Set by this class only. */
  isDeletedHere = false
  /** Why the log ended, if the storage has lost records of it. Set by this class only. */
  loss: HeadwaterError | undefined
  /** Whether it was used since it was last considered for eviction. Set by the table of streams only. */
  wasUsed = false
  /** The latest read that is known to be recorded, in milliseconds: see `core/lifetime.ts`. */
  readAt: number | undefined
  /** The metered bytes of a record: the mean of those that were appended or read last. */
  recordBytes = RECORD_BYTES
  #leases = 0
  /** How often it was marked as stale, and how often before the latest reload began. */
  #staleMarks = 0
  #reloadedMarks = 0
  #syncing: Promise<void> | undefined
  #syncAgain = false

  constructor(options: StreamLogOptions, document: StreamDocument, head: Head, codec: RecordCodec) {
    this.#options = options
    this.document = document
    this.head = head
    this.codec = codec
    this.readAt = document.readAt
    this.#live = new LiveTail(options.limits)
    this.#pipeline = new AppendPipeline(options, this)
  }

  /** A read of this or another engine is recorded. */
  noteReadAt(at: number | undefined): void {
    if (at !== undefined) this.readAt = Math.max(at, this.readAt ?? 0)
  }

  get isIdle(): boolean {
    return this.#leases === 0 && this.pendingAppends === 0 && this.followers === 0
  }

  get pendingAppends(): number {
    return this.codec.pending + this.#pipeline.pending
  }

  get followers(): number {
    return this.#live.followers
  }

  /** How many of them wait for an append. */
  get waiting(): number {
    return this.#live.waiting
  }

  /** Keeps this object in the table of streams until it is released. */
  lease(): StreamLease {
    let held = 1
    this.#leases++
    return {
      log: this,
      release: () => {
        this.#leases -= held
        held = 0
      },
    }
  }

  /** Appends in the order of the calls. Throws as `RecordCodec.checkKey` does. */
  append(
    batch: AppendBatch,
    key: EncryptionKey | undefined,
    listener: AppendListener,
    group?: AppendGroup,
  ): void {
    this.codec.append(batch, key, listener, group, this.#pipeline)
  }

  /** Keeps the latest appends for the follower until the returned function is called. */
  follow(follower: Follower): () => void {
    const unfollow = this.#live.follow(follower)
    this.#options.onFollow()
    return unfollow
  }

  /** Returns the append that begins at exactly `seqNum`, if it is kept for followers. */
  liveBatchAt(seqNum: number): LiveBatch | undefined {
    return this.#live.at(seqNum)
  }

  readBlocks(range: ReadRange): Promise<readonly StoredBlock[]> {
    return this.#options.session.read(this.document.logId, range)
  }

  /** Tells the end of a log from a deleted one, which reads as empty. */
  async exists(): Promise<boolean> {
    return (await this.#options.session.head(this.document.logId)) !== undefined
  }

  /** This engine has changed the configuration. */
  invalidate(): void {
    this.#pipeline.invalidate()
  }

  /** Whether the head has to be read before what is known of the log is used. */
  get isStale(): boolean {
    return this.#staleMarks > this.#reloadedMarks
  }

  /** The stream may not be as it is known: it is read again before the next use. */
  markStale(): void {
    this.#staleMarks++
  }

  /** Ends the log, which does not exist any more. @param isHere Whether this engine deleted it. */
  markDeleted(isHere = false): void {
    if (this.isDeleted) return
    this.isDeleted = true
    this.isDeletedHere = isHere
    this.invalidate()
    this.wake()
    this.#options.onDeleted(this)
  }

  /** Ends the log, which cannot be used any more: its sessions end with the error. */
  fail(error: HeadwaterError): void {
    this.loss = error
    this.markDeleted()
  }

  /** Makes `head` that of the storage, without asking if only this engine changes it. False if deleted. */
  refresh(): Promise<boolean> {
    if (this.isDeleted) return Promise.resolve(false)
    return this.#options.isShared() || this.isStale ? this.reload() : Promise.resolve(true)
  }

  /** Reads head and configuration from the storage, and what other engines appended for the followers. */
  async reload(): Promise<boolean> {
    const { session, loadDocument } = this.#options
    const { logId, basin, name } = this.document
    const marks = this.#staleMarks
    for (let i = 0; i < RELOADS_MAX; i++) {
      const head = await this.#readHead()
      if (this.isDeleted) return false
      if (head === undefined) break
      // First: a follower that finds the head moved and no batch returns to the storage.
      await this.#publishUpTo(head)
      if (this.isDeleted) return false
      if (head.epoch !== this.document.epoch) {
        const document = await loadDocument(basin, name)
        if (document?.logId !== logId) break
        this.document = document
        if (head.epoch !== document.epoch) continue
      }
      this.#advance(head)
      this.#reloadedMarks = Math.max(this.#reloadedMarks, marks)
      return true
    }
    if ((await session.head(logId)) !== undefined) throw conflictError()
    this.markDeleted()
    return false
  }

  wake(): void {
    this.#live.wake()
  }

  onDurable({ blocks, head }: WriteAttempt): void {
    const trimmed = head.trimPoint !== this.head.trimPoint
    if (head.tail.seqNum > this.head.tail.seqNum) this.head = head
    const [{ meteredBytes, endSeqNum, firstSeqNum }] = blocks as readonly [StoredBlock]
    this.recordBytes = meteredBytes / (endSeqNum - firstSeqNum)
    if (this.followers > 0) {
      for (const block of blocks) this.#live.publish(liveBatch(block, head))
    }
    if (trimmed) this.#options.onTrim()
  }

  /** Publishes what another engine appended. One run at a time; a call during a run starts another. */
  sync(): Promise<void> {
    this.#syncAgain = true
    this.#syncing ??= this.#syncWhileAsked()
    return this.#syncing
  }

  async #syncWhileAsked(): Promise<void> {
    try {
      // No turn passes between the last test and the reset of `#syncing`, so no call is missed.
      while (this.#syncAgain) {
        this.#syncAgain = false
        await this.reload()
      }
    } finally {
      this.#syncing = undefined
    }
  }

  /** Passes the appends of other engines up to this head to the followers. */
  async #publishUpTo(head: Head): Promise<void> {
    const { session, limits } = this.#options
    const known = this.head.tail.seqNum
    const endSeqNum = head.tail.seqNum
    if (this.followers === 0 || endSeqNum <= known || this.isStale) return
    const from = { seqNum: known }
    const range = { from, endSeqNum, bytesMax: limits.followerLagBytes }
    const blocks = await session.read(this.document.logId, range)
    // Followers read from the storage what may be of another history than the head.
    if (this.isStale) return
    for (const block of this.#appendsOf(blocks)) {
      if (block.firstSeqNum >= known) this.#live.publish(liveBatch(block, head))
    }
  }

  #appendsOf(blocks: readonly StoredBlock[]): readonly StoredBlock[] {
    try {
      return this.codec.split(blocks)
    } catch {
      // Followers read the damaged block from the storage, and reject.
      return []
    }
  }

  /**
   * Reads the head, and ends the log if the known one is neither that nor an earlier one of its history: the
   * storage has lost appends, as a database does when a lagging replica takes over.
   */
  async #readHead(): Promise<Head | undefined> {
    const known = this.head
    const head = await this.#options.session.head(this.document.logId, identityOf(known))
    // An append that has succeeded meanwhile expected the known head.
    if (head === undefined || this.head !== known || this.isDeleted) return head
    const ahead = head.tail.seqNum - known.tail.seqNum
    if (ahead < 0 || (ahead === 0 && head.appendId !== known.appendId) || head.isReplaced) {
      this.fail(lostRecordsError(known.tail.seqNum))
      this.#options.onLost(this)
    }
    return head
  }

  #advance(head: Head): void {
    const known = this.head
    if (head.tail.seqNum < known.tail.seqNum) return
    this.head = head
    if (head.tail.seqNum > known.tail.seqNum) this.wake()
  }
}
