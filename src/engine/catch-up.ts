import {
  admitSized,
  admitsAll,
  afterDelivering,
  isExhausted,
  type ReadLimits,
  withinOneBatch,
} from '../core/read-limits.ts'
import type { ReadPlan } from '../core/read-plan.ts'
import { isExpired } from '../core/retention.ts'
import { EMPTY_BYTES } from '../model/bytes.ts'
import { BATCH_ENCODED_BYTES_MAX, READ_METERED_BYTES_MAX, READ_RECORDS_MAX } from '../model/limits.ts'
import type { StreamPosition } from '../model/position.ts'
import type { StoredBlock } from '../storage/contract.ts'
import { ReadBatch, RecordBatch } from '../storage/record-batch.ts'
import { type RecordSpan, spansOf } from '../storage/record-spans.ts'
import type { BlockSource } from './block-source.ts'
import { intact } from './damage.ts'
import type { BlockOpener } from './encryption/block-opener.ts'
import { isPromise, type MaybePromise } from './encryption/cipher-suite.ts'
import type { OpenedBlocks } from './encryption/opened-blocks.ts'
import { deletedUnderReadError } from './errors.ts'

export interface CaughtUp {
  /** Undefined when there was nothing to deliver. */
  readonly batch: ReadBatch | undefined
  /** A bound of the read forbids the next record: the read is over. */
  readonly ended: boolean
}

/**
 * Reads a log's stored records in batches of up to 1,000 records and 1 MiB (wire-behaviour.md 5.7), passing over what is trimmed, expired or
 * gone. Whole blocks are handed on as bytes; of one that the read's start or bounds cut through, a part of the bytes.
 */
export class CatchUp {
  readonly #source: BlockSource
  readonly #openedAt: number
  /** Undefined on a plain stream. */
  readonly #opener: BlockOpener | undefined
  readonly #opened: OpenedBlocks | undefined
  #blocks: readonly StoredBlock[] = []
  #first = 0
  /** Of the block that was last looked into. */
  #scanned: { readonly data: Uint8Array; readonly spans: readonly RecordSpan[] } | undefined
  #position: number

  constructor(source: BlockSource, opener: BlockOpener | undefined, openedAt: number, position: number) {
    this.#source = source
    this.#opener = opener
    this.#opened = opener?.blocks()
    this.#openedAt = openedAt
    this.#position = position
  }

  /** Sequence number of the next record to deliver. */
  get position(): number {
    return this.#position
  }

  /** Goes on from here, as when records were delivered in another way. */
  skipTo(seqNum: number): void {
    this.#position = seqNum
  }

  close(): void {
    this.#source.close()
  }

  /** Finds where the plan starts. Resolves to whether there is a record at or after it, below `endSeqNum`. */
  async locate(plan: ReadPlan, endSeqNum: number): Promise<boolean> {
    this.#position = 'seqNum' in plan.start ? Math.max(plan.start.seqNum, plan.floor) : plan.floor
    if (this.#position >= endSeqNum) return false
    const from = 'timestamp' in plan.start ? plan.start : { seqNum: this.#position }
    for (;;) {
      const block = await this.#peek(endSeqNum, from, plan.limits)
      if (block === undefined) {
        this.#position = endSeqNum
        return false
      }
      this.#position = Math.max(this.#position, block.firstSeqNum)
      if (!('timestamp' in plan.start) || block.firstTimestamp >= plan.start.timestamp) break
      const { timestamp } = plan.start
      const first = this.#positions(block).find((record) => record.timestamp >= timestamp)
      this.#position = Math.max(this.#position, first?.seqNum ?? block.endSeqNum)
      if (first !== undefined) break
      // One of several appends in a stored block: a later one of them has it.
    }
    return this.#position < endSeqNum
  }

  /** The next batch of records below `endSeqNum` that the limits admit. Without one and without `ended`, `endSeqNum` is reached. */
  async next(endSeqNum: number, limits: ReadLimits): Promise<CaughtUp> {
    const parts: Uint8Array[] = []
    let count = 0
    let meteredBytes = 0
    let ended = false
    let lastSeqNum = -1
    let encodedBytes = 0
    for (;;) {
      // What is at hand is delivered before the storage is asked for more.
      if (count > 0 && this.#first >= this.#blocks.length) break
      const stored =
        this.#atHand(endSeqNum) ?? (await this.#peek(endSeqNum, { seqNum: this.#position }, limits))
      if (stored === undefined) {
        this.#position = Math.max(this.#position, endSeqNum)
        break
      }
      const blockCount = stored.endSeqNum - stored.firstSeqNum
      const exceedsBatch =
        count + blockCount > READ_RECORDS_MAX || meteredBytes + stored.meteredBytes > READ_METERED_BYTES_MAX
      if (count > 0 && exceedsBatch) break
      const left = afterDelivering(limits, count, meteredBytes)
      let block: StoredBlock | undefined = stored
      if (this.#opened !== undefined) {
        try {
          const opening = this.#open(this.#opened, stored, { count, meteredBytes }, endSeqNum, limits)
          block = isPromise(opening) ? await opening : opening
        } catch (error) {
          // What is already taken comes first; then it is told what is wrong with the rest.
          if (count > 0) break
          throw error
        }
      }
      if (block === undefined) {
        ended = true
        break
      }
      if (count > 0 && encodedBytes + block.data.length > BATCH_ENCODED_BYTES_MAX) break
      const taken = this.#take(block, endSeqNum, left)
      if (taken.count > 0) {
        parts.push(taken.data)
        encodedBytes += taken.data.length
        lastSeqNum = taken.lastSeqNum
      }
      count += taken.count
      meteredBytes += taken.meteredBytes
      if (taken.ended) {
        ended = true
        break
      }
      if (isExhausted(afterDelivering(limits, count, meteredBytes))) break
    }
    if (count === 0) return { batch: undefined, ended }
    const summary = { count, meteredBytes, lastSeqNum }
    return { batch: new ReadBatch(RecordBatch.ofBlocks(parts), summary), ended }
  }

  /** What is wanted of an encrypted block, in plain text, behind what the batch has; undefined when the limits admit nothing of it. */
  #open(
    opened: OpenedBlocks,
    block: StoredBlock,
    taken: { readonly count: number; readonly meteredBytes: number },
    endSeqNum: number,
    limits: ReadLimits,
  ): MaybePromise<StoredBlock | undefined> {
    const { count, meteredBytes } = taken
    const left = afterDelivering(limits, count, meteredBytes)
    const wanted = { from: this.#position, endSeqNum, limits: left }
    const blocks = () =>
      this.#blocks.slice(this.#first + 1).filter(({ expiresAt }) => !isExpired(expiresAt, this.#openedAt))
    const room = afterDelivering(withinOneBatch(limits), count, meteredBytes)
    return opened.open(block, wanted, { blocks, room })
  }

  #positions(block: StoredBlock): readonly StreamPosition[] {
    return this.#opener === undefined ? this.#spans(block) : this.#opener.positions(block)
  }

  /** Finding the start and cutting there ask for the same block. */
  #spans(block: StoredBlock): readonly RecordSpan[] {
    if (this.#scanned?.data !== block.data) {
      this.#scanned = { data: block.data, spans: intact(() => spansOf(block)) }
    }
    return this.#scanned.spans
  }

  /** Takes what is admitted of a block and moves behind it. */
  #take(block: StoredBlock, endSeqNum: number, limits: ReadLimits) {
    const count = block.endSeqNum - block.firstSeqNum
    const { meteredBytes, lastTimestamp } = block
    const isWhole = block.firstSeqNum >= this.#position && block.endSeqNum <= endSeqNum
    if (isWhole && admitsAll(limits, { count, meteredBytes, lastTimestamp })) {
      this.#position = block.endSeqNum
      this.#pass()
      return { data: block.data, count, meteredBytes, lastSeqNum: block.endSeqNum - 1, ended: false }
    }
    const spans = this.#spans(block).filter(({ seqNum }) => seqNum >= this.#position && seqNum < endSeqNum)
    const admitted = admitSized(limits, spans)
    const ended = admitted.count < spans.length
    const next = ended ? spans[admitted.count]!.seqNum : Math.min(block.endSeqNum, endSeqNum)
    this.#position = next
    if (next >= block.endSeqNum) this.#pass()
    const taken = spans.slice(0, admitted.count)
    return { data: bytesOf(block, taken), ...admitted, lastSeqNum: taken.at(-1)?.seqNum ?? -1, ended }
  }

  /** Is done with the first block at hand. */
  #pass(): void {
    this.#scanned = undefined
    this.#opened?.forget(this.#blocks[this.#first]!)
    this.#first++
  }

  /** The first block at hand with a record at or after the position and below `endSeqNum`. */
  #atHand(endSeqNum: number): StoredBlock | undefined {
    for (;;) {
      const block = this.#blocks[this.#first]
      // The end may lie inside a block: of neighbours that became one since it was looked up.
      const isOver = this.#position >= endSeqNum
      if (block === undefined || isOver || block.firstSeqNum >= endSeqNum) return undefined
      if (block.endSeqNum > this.#position && !isExpired(block.expiresAt, this.#openedAt)) return block
      this.#position = Math.max(this.#position, block.endSeqNum)
      this.#pass()
    }
  }

  /** The first block with a record at or after the position and below `endSeqNum`; asks the storage when none is at hand. */
  async #peek(
    endSeqNum: number,
    from: { readonly seqNum: number } | { readonly timestamp: number },
    limits: ReadLimits,
  ): Promise<StoredBlock | undefined> {
    let start = from
    for (;;) {
      const first = this.#first
      const block = this.#atHand(endSeqNum)
      if (block !== undefined) return block
      if (this.#first < this.#blocks.length || this.#position >= endSeqNum) return undefined
      if (this.#first > first) start = { seqNum: this.#position }
      const blocks = await this.#source.blocks(start, endSeqNum, limits)
      this.#blocks =
        this.#opener === undefined ? blocks : blocks.flatMap((block) => this.#opener!.split(block))
      this.#first = 0
      if (this.#blocks.length === 0) {
        if (!(await this.#source.exists())) throw deletedUnderReadError()
        return undefined
      }
    }
  }
}

/** A copy: a few records must not keep the whole block in memory. */
function bytesOf({ data }: StoredBlock, spans: readonly RecordSpan[]): Uint8Array {
  return spans.length === 0 ? EMPTY_BYTES : new Uint8Array(data.subarray(spans[0]!.start, spans.at(-1)!.end))
}
