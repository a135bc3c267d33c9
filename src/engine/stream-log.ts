import type { AppendBatch } from '../model/append-input.ts'
import type { EncryptionKey } from '../model/encryption-key.ts'
import type { AppendAck } from '../model/info.ts'
import type { StreamPosition } from '../model/position.ts'
import type { Head, StorageSession, StoredBlock } from '../storage/contract.ts'
import { ReadBatch, RecordBatch } from '../storage/record-batch.ts'
import type { AppendGroup } from './append-group.ts'
import { AppendPipeline, type AppendTarget, type WrittenAppend } from './append-pipeline.ts'
import type { Catalog } from './catalog.ts'
import type { StreamDocument } from './documents.ts'
import type { StreamCipher } from './encryption/stream-cipher.ts'
import { closedError, conflictError, deletedError, storageError } from './errors.ts'
import { type LiveBatch, LiveTail } from './live-tail.ts'
import type { Settings } from './options.ts'

const RELOADS_MAX = 10

/**
 * One incarnation of a stream, as this engine knows it: its configuration, its durable head, the appends in flight and the live followers.
 * There is at most one per log in an engine.
 */
export class StreamLog implements AppendTarget {
  readonly live: LiveTail
  readonly #session: StorageSession
  readonly #catalog: Catalog
  readonly #shared: boolean
  readonly #pipeline: AppendPipeline
  readonly #onTrim: () => void
  readonly #onDeleted: (log: StreamLog) => void
  readonly #lagBytes: number
  readonly #settings: Settings
  #cipher: StreamCipher | undefined
  #document: StreamDocument
  #head: Head
  #deletedBy: 'this engine' | 'another engine' | undefined
  #pins = 0
  #doubted = false
  #syncing: Promise<void> | undefined
  #syncAgain = false

  constructor(
    engine: {
      readonly session: StorageSession
      readonly catalog: Catalog
      readonly settings: Settings
      readonly onTrim: () => void
      readonly onDeleted: (log: StreamLog) => void
    },
    document: StreamDocument,
    head: Head,
  ) {
    const { limits, storage } = engine.settings
    this.#session = engine.session
    this.#catalog = engine.catalog
    this.#shared = storage.manifest.shared
    this.#onTrim = engine.onTrim
    this.#onDeleted = engine.onDeleted
    this.#lagBytes = limits.followerLagBytes
    this.#settings = engine.settings
    this.#document = document
    this.#head = head
    this.live = new LiveTail({ batches: limits.followerLagBatches, bytes: limits.followerLagBytes })
    this.#pipeline = new AppendPipeline(engine.session, engine.settings, this)
  }

  get document(): StreamDocument {
    return this.#document
  }

  /** The durable head, as far as this engine has seen it. */
  get head(): Head {
    return this.#head
  }

  /** Set once the log is gone: what holds this object ends, what comes next looks the name up again. */
  get isDeleted(): boolean {
    return this.#deletedBy !== undefined
  }

  get isDeletedHere(): boolean {
    return this.#deletedBy === 'this engine'
  }

  get isIdle(): boolean {
    return this.#pins === 0 && this.#pipeline.pending === 0 && this.live.followers === 0
  }

  get pendingAppends(): number {
    return (this.#cipher?.pending ?? 0) + this.#pipeline.pending
  }

  /** Keeps this object the one for its log while a session uses it. */
  pin(): () => void {
    this.#pins++
    let pinned = true
    return () => {
      if (pinned) this.#pins--
      pinned = false
    }
  }

  /** What seals and opens its records; undefined when they are plain. Throws 422 `invalid` where this engine lacks the cipher. */
  get cipher(): StreamCipher | undefined {
    const { cipher } = this.#document
    if (cipher === null) return undefined
    this.#cipher ??= this.#settings.ciphers.ofStream({ ...this.#document, cipher })
    return this.#cipher
  }

  /** Appends to a plain stream. */
  append(batch: AppendBatch, group?: AppendGroup): Promise<AppendAck> {
    return this.#pipeline.append(batch, group)
  }

  /** Appends to an encrypted stream, in the order of the calls, however long a cipher takes. */
  appendSealed(
    cipher: StreamCipher,
    key: EncryptionKey,
    batch: AppendBatch,
    group?: AppendGroup,
  ): Promise<AppendAck> {
    return cipher.append(this.#pipeline, batch, key, group)
  }

  /** The configuration was changed by this engine. */
  invalidate(): void {
    this.#pipeline.invalidate()
  }

  /** What this engine did to the stream may or may not have happened: it is read anew before it is believed. */
  doubt(): void {
    this.#doubted = true
  }

  /** The log is gone: who holds this ends, who comes looks the name up. */
  markDeleted(by: 'this engine' | 'another engine'): void {
    if (this.#deletedBy !== undefined) return
    this.#deletedBy = by
    this.#pipeline.invalidate()
    this.live.wake()
    this.#onDeleted(this)
    void this.#cipher?.close(this.#settings.clock, deletedError())
  }

  async drain(): Promise<void> {
    await this.#cipher?.close(this.#settings.clock, closedError())
    await this.#pipeline.close()
  }

  /** Makes `head` as fresh as the storage's. Costs nothing when no other engine can have changed it. Resolves to false when it is gone. */
  refresh(): Promise<boolean> {
    if (this.isDeleted) return Promise.resolve(false)
    return this.#shared || this.#doubted ? this.reload() : Promise.resolve(true)
  }

  async reload(): Promise<boolean> {
    const { logId, basin, name } = this.#document
    for (let i = 0; i < RELOADS_MAX; i++) {
      const head = await storageError(this.#session.head(logId))
      if (head === undefined) break
      if (head.epoch !== this.#document.epoch) {
        const document = (await this.#catalog.stream(basin, name))?.value
        if (document?.logId !== logId) break
        this.#document = document
        if (head.epoch !== document.epoch) continue
      }
      this.#advance(head)
      this.#doubted = false
      return true
    }
    if (await this.#exists()) throw conflictError()
    this.markDeleted('another engine')
    return false
  }

  onDurable({ block, head }: WrittenAppend): void {
    const trimmed = head.trimPoint !== this.#head.trimPoint
    if (head.tail.seqNum > this.#head.tail.seqNum) this.#head = head
    if (this.live.followers > 0) this.#publish(block)
    if (trimmed) this.#onTrim()
  }

  /** Another engine changed the log: brings what it appended to the followers here. */
  sync(): Promise<void> {
    if (this.#syncing !== undefined) {
      this.#syncAgain = true
      return this.#syncing
    }
    this.#syncing = this.#syncWhileAsked()
    return this.#syncing
  }

  async #syncWhileAsked(): Promise<void> {
    try {
      do {
        this.#syncAgain = false
        await this.#sync()
        // Without a turn in between: who asks from now on starts anew.
      } while (this.#syncAgain)
    } finally {
      this.#syncing = undefined
    }
  }

  async #sync(): Promise<void> {
    const { logId } = this.#document
    const head = await storageError(this.#session.head(logId))
    if (head === undefined) {
      this.markDeleted('another engine')
      return
    }
    const known = this.#head.tail.seqNum
    if (this.live.followers > 0 && head.tail.seqNum > known) {
      const from = { seqNum: known }
      const range = { from, endSeqNum: head.tail.seqNum, bytesMax: this.#lagBytes, unsplit: true }
      const blocks = await storageError(this.#session.read(logId, range))
      this.#advance(head)
      for (const block of blocks) {
        if (block.firstSeqNum >= known) for (const part of this.#appendsOf(block)) this.#publish(part)
      }
    }
    await this.reload()
  }

  #publish(block: StoredBlock): void {
    this.live.publish(liveBatch(block, this.#document.cipher !== null))
  }

  /** What is published as one batch is opened with one key. */
  #appendsOf(block: StoredBlock): readonly StoredBlock[] {
    if (this.#cipher === undefined) return [block]
    try {
      return this.#cipher.split(block)
    } catch {
      // Followers read it from the storage, and are told there what is wrong with it.
      return []
    }
  }

  async #exists(): Promise<boolean> {
    return (await storageError(this.#session.head(this.#document.logId))) !== undefined
  }

  #advance(head: Head): void {
    const known = this.#head
    if (head.tail.seqNum < known.tail.seqNum) return
    this.#head = head
    if (head.tail.seqNum > known.tail.seqNum) this.live.wake()
  }
}

/** An append as followers get it: with the tail that it made (wire-behaviour.md 5.7). */
function liveBatch(block: StoredBlock, isSealed: boolean): LiveBatch {
  const { firstSeqNum, endSeqNum, lastTimestamp, meteredBytes } = block
  const tail: StreamPosition = { seqNum: endSeqNum, timestamp: lastTimestamp }
  const summary = { count: endSeqNum - firstSeqNum, meteredBytes, lastSeqNum: endSeqNum - 1 }
  const batch = new ReadBatch(RecordBatch.ofData(block.data), summary, tail)
  const live = { firstSeqNum, endSeqNum, lastTimestamp, batch: batch as LiveBatch['batch'] }
  return isSealed ? { ...live, sealed: block } : live
}
