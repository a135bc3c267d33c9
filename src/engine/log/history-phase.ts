import { deletedUnderReadError } from '../../api/errors.ts'
import { afterDelivering, isExhausted, type ReadLimits, type ReadPlan } from '../../core/read-plan.ts'
import { BATCH_ENCODED_BYTES_MAX, READ_METERED_BYTES_MAX, READ_RECORDS_MAX } from '../../model/limits.ts'
import { isPromise } from '../../runtime/maybe-promise.ts'
import type { StoredBlock } from '../../storage/contract.ts'
import { ReadBatch, type RecordBatch } from '../../storage/record-batch.ts'
import { type RecordSpan, spansOf } from '../../storage/record-spans.ts'
import { type BlockPart, blockPart } from './block-part.ts'
import type { BlockSource } from './block-source.ts'
import { decodeStored } from './errors.ts'
import type { ReadProgress } from './read-progress.ts'
import type { RecordReader } from './record-codec.ts'

export interface HistoryBatch {
  /** Undefined when there was nothing to deliver. */
  readonly batch: ReadBatch | undefined
  /** Whether a limit of the read forbids the next record, so that the read is over. */
  readonly ended: boolean
}

/**
 * Reads the stored records of a log in batches of up to 1,000 records and 1 MiB, skipping those that are
 * trimmed, expired or deleted. Whole blocks are passed on as bytes, and of a block that starts or ends
 * outside the read, a part.
 */
export class HistoryPhase {
  readonly #source: BlockSource
  readonly #reader: RecordReader
  readonly #progress: ReadProgress
  readonly #isExpired: (block: StoredBlock) => boolean
  readonly #recordsOf: (blocks: readonly Uint8Array[]) => RecordBatch
  #blocks: readonly StoredBlock[] = []
  #first = 0
  /** The records of the block that was last cut. */
  #scanned: { readonly data: Uint8Array; readonly spans: readonly RecordSpan[] } | undefined

  constructor(
    source: BlockSource,
    reader: RecordReader,
    progress: ReadProgress,
    isExpired: (block: StoredBlock) => boolean,
    recordsOf: (blocks: readonly Uint8Array[]) => RecordBatch,
  ) {
    this.#recordsOf = recordsOf
    this.#source = source
    this.#reader = reader
    this.#progress = progress
    this.#isExpired = isExpired
  }

  close(): void {
    this.#source.close()
  }

  /** Drops what was read and not delivered. The next batch is read from the storage again. */
  forget(): void {
    this.#blocks = []
    this.#first = 0
    this.#scanned = undefined
    this.#source.forget()
  }

  /**
   * Moves to where the plan starts. Resolves to whether there is a record at or after it, below `endSeqNum`.
   */
  async locate(plan: ReadPlan, endSeqNum: number): Promise<boolean> {
    const progress = this.#progress
    progress.position = 'seqNum' in plan.start ? Math.max(plan.start.seqNum, plan.floor) : plan.floor
    if (progress.position >= endSeqNum) return false
    const from = 'timestamp' in plan.start ? plan.start : { seqNum: progress.position }
    for (;;) {
      const block = await this.#peek(endSeqNum, from)
      if (block === undefined) {
        progress.position = endSeqNum
        return false
      }
      progress.position = Math.max(progress.position, block.firstSeqNum)
      if (!('timestamp' in plan.start) || block.firstTimestamp >= plan.start.timestamp) break
      const { timestamp } = plan.start
      const first = this.#reader.positions(block).find((record) => record.timestamp >= timestamp)
      progress.position = Math.max(progress.position, first?.seqNum ?? block.endSeqNum)
      if (first !== undefined) break
      // One of several appends in a stored block: the record is in a later one.
    }
    return progress.position < endSeqNum
  }

  /**
   * The next batch below `endSeqNum` that the limits admit. Without a batch and without `ended`, `endSeqNum`
   * is reached.
   */
  async next(endSeqNum: number): Promise<HistoryBatch> {
    const progress = this.#progress
    const { limits } = progress
    const parts: Uint8Array[] = []
    let count = 0
    let meteredBytes = 0
    let encodedBytes = 0
    let lastSeqNum = -1
    let ended = false
    let release: (() => void) | undefined
    for (;;) {
      // Blocks that are already read are delivered before the storage is asked for more.
      if (count > 0 && this.#first >= this.#blocks.length) break
      const stored = this.#current(endSeqNum) ?? (await this.#peek(endSeqNum, { seqNum: progress.position }))
      if (stored === undefined) {
        progress.position = Math.max(progress.position, endSeqNum)
        break
      }
      const blockCount = stored.endSeqNum - stored.firstSeqNum
      const exceedsBatch =
        count + blockCount > READ_RECORDS_MAX || meteredBytes + stored.meteredBytes > READ_METERED_BYTES_MAX
      if (count > 0 && exceedsBatch) break
      const left = afterDelivering(limits, count, meteredBytes)
      let block: StoredBlock | undefined
      try {
        const opening = this.#reader.open(stored, { from: progress.position, endSeqNum, limits: left })
        block = isPromise(opening) ? await opening : opening
      } catch (error) {
        // The records before the block are delivered first; the next call reports the error.
        if (count > 0) break
        throw error
      }
      if (block === undefined) {
        ended = true
        break
      }
      if (count > 0 && encodedBytes + block.data.length > BATCH_ENCODED_BYTES_MAX) break
      const taken = this.#take(block, endSeqNum, left)
      if (taken.count > 0) {
        // A part shares the memory with what is read next, and the parts of a batch are copied.
        release = parts.push(taken.data) === 1 && taken.data === stored.data ? stored.release : undefined
        encodedBytes += taken.data.length
        lastSeqNum = taken.lastSeqNum
      }
      count += taken.count
      meteredBytes += taken.meteredBytes
      ended = taken.ended
      if (ended || isExhausted(afterDelivering(limits, count, meteredBytes))) break
    }
    if (count === 0) return { batch: undefined, ended }
    const summary = { count, meteredBytes, lastSeqNum, release }
    return { batch: new ReadBatch(this.#recordsOf(parts), summary), ended }
  }

  #spans(block: StoredBlock): readonly RecordSpan[] {
    if (this.#scanned?.data !== block.data) {
      this.#scanned = { data: block.data, spans: decodeStored(() => spansOf(block)) }
    }
    return this.#scanned.spans
  }

  /** Takes the admitted records of the current block and moves past them. */
  #take(block: StoredBlock, endSeqNum: number, limits: ReadLimits): BlockPart {
    const progress = this.#progress
    const part = blockPart(block, progress.position, endSeqNum, limits, () => this.#spans(block))
    progress.position = part.next
    if (part.next >= block.endSeqNum) this.#pass()
    return part
  }

  /** Moves on to the next block. */
  #pass(): void {
    this.#scanned = undefined
    this.#first++
  }

  /** The first of the blocks already read with a record at or after the position and below `endSeqNum`. */
  #current(endSeqNum: number): StoredBlock | undefined {
    const progress = this.#progress
    for (;;) {
      const block = this.#blocks[this.#first]
      // The end may be inside a block, if the storage has merged blocks since the tail was read.
      const isOver = progress.position >= endSeqNum
      if (block === undefined || isOver || block.firstSeqNum >= endSeqNum) return undefined
      if (block.endSeqNum > progress.position && !this.#isExpired(block)) return block
      progress.position = Math.max(progress.position, block.endSeqNum)
      this.#pass()
    }
  }

  /** Does the same as `#current`, but reads from the storage if no block is left. */
  async #peek(
    endSeqNum: number,
    from: { readonly seqNum: number } | { readonly timestamp: number },
  ): Promise<StoredBlock | undefined> {
    const progress = this.#progress
    let start = from
    for (;;) {
      const first = this.#first
      const block = this.#current(endSeqNum)
      if (block !== undefined) return block
      if (this.#first < this.#blocks.length || progress.position >= endSeqNum) return undefined
      if (this.#first > first) start = { seqNum: progress.position }
      this.#blocks = await this.#source.blocks(start, endSeqNum, progress.limits)
      this.#first = 0
      if (this.#blocks.length === 0) {
        if (!(await this.#source.exists())) throw deletedUnderReadError()
        return undefined
      }
    }
  }
}
