import { deletedUnderReadError } from '../../api/read-session.ts'
import {
  admit,
  admitsAll,
  afterDelivering,
  isExhausted,
  type ReadLimits,
  type ReadPlan,
  withinBatch,
} from '../../core/read-plan.ts'
import { EMPTY_BYTES } from '../../model/bytes.ts'
import { BATCH_ENCODED_BYTES_MAX, READ_METERED_BYTES_MAX, READ_RECORDS_MAX } from '../../model/limits.ts'
import { isPromise } from '../../runtime/maybe-promise.ts'
import type { ReadRange, StoredBlock } from '../../storage/contract.ts'
import { type RecordSpan, spansOf } from '../../storage/cut-block.ts'
import { ReadBatch, RecordBatch } from '../../storage/record-batch.ts'
import { decodeStored } from '../errors.ts'
import { type ReadShare, readCost, SMALL_BYTES } from './read-budget.ts'
import type { RecordReader } from './record-codec.ts'
import type { StreamLog } from './stream-log.ts'

/** The most that a request returns, in metered bytes: a storage stops after the block that reaches 1 MiB. */
const REQUEST_BYTES_MAX = 2 * READ_METERED_BYTES_MAX

/** Memory for what a storage reads of a request: it reads 1 MiB at once, and what lies between its blocks. */
const MEMORY_BYTES = 1_310_720

/** What a read gets of the history at once. */
export interface HistoryStep {
  /** Undefined when there was nothing to deliver. */
  readonly batch: ReadBatch | undefined
  /** The sequence number at which the read continues. */
  readonly next: number
  /** Whether a limit of the read forbids the next record, so that the read is over. */
  readonly ended: boolean
}

export interface HistoryOptions {
  readonly reader: RecordReader
  readonly share: ReadShare
  readonly isExpired: (block: StoredBlock) => boolean
}

interface Ahead {
  readonly from: number
  readonly blocks: Promise<readonly StoredBlock[]>
  readonly memory: Uint8Array | undefined
}

/**
 * Reads the stored records of a log in batches of up to 1,000 records and 1 MiB, skipping those that are
 * trimmed, expired or deleted. Whole blocks are passed on as bytes, and of a block that starts or ends
 * outside the read, a part. From the second request on, the storage is asked for the next blocks while those
 * before are delivered.
 */
export class HistoryReader {
  readonly #log: StreamLog
  readonly #options: HistoryOptions
  #blocks: StoredBlock[] = []
  #ahead: Ahead | undefined
  #isRepeated = false
  #reusesMemory = false
  /** Where the blocks are that were read last, if that is used again. */
  #memory: Uint8Array | undefined

  constructor(log: StreamLog, options: HistoryOptions) {
    this.#log = log
    this.#options = options
  }

  /** Lets each batch be used until the next one is asked for, and no longer. */
  reuseMemory(): void {
    this.#reusesMemory = true
  }

  /** Drops what was read and not delivered. The next batch is read from the storage again. */
  forget(): void {
    this.#blocks = []
    // The storage may still read into its memory, which is not used again.
    this.#ahead = undefined
    this.#memory = undefined
  }

  /** Resolves to the sequence number of the first record that the plan wants, or to `end` or beyond. */
  async locate({ start, floor, limits }: ReadPlan, end: number): Promise<number> {
    let position = 'seqNum' in start ? Math.max(start.seqNum, floor) : floor
    let from: ReadRange['from'] = 'seqNum' in start ? { seqNum: position } : start
    while (position < end) {
      const block = await this.#peek(from, position, end, limits)
      if (block === undefined) return end
      position = Math.max(position, block.firstSeqNum)
      if ('seqNum' in start || block.firstTimestamp >= start.timestamp) break
      const first = this.#options.reader
        .positions(block)
        .find(({ timestamp }) => timestamp >= start.timestamp)
      position = Math.max(position, first?.seqNum ?? block.endSeqNum)
      if (first !== undefined) break
      // One of several appends in a stored block: the record is in a later one.
      from = { seqNum: position }
    }
    return position
  }

  /** The next batch below `end` that the limits admit. With neither a batch nor `ended`, `end` is reached. */
  async next(position: number, end: number, limits: ReadLimits): Promise<HistoryStep> {
    const batch = new BatchBuilder(limits)
    let next = position
    let stored = await this.#peek({ seqNum: next }, next, end, limits)
    if (stored === undefined) return { batch: undefined, next: Math.max(position, end), ended: false }
    // Blocks that are already read are delivered before the storage is asked for more.
    for (; stored !== undefined; stored = this.#current(next, end)) {
      if (!batch.hasRoomFor(stored)) break
      let block: StoredBlock | undefined
      try {
        const opening = this.#options.reader.open(stored, { from: next, endSeqNum: end, limits: batch.left })
        block = isPromise(opening) ? await opening : opening
      } catch (error) {
        // The records before the block are delivered first; the next call reports the error.
        if (batch.count > 0) break
        throw error
      }
      if (block === undefined) return { batch: batch.build(), next, ended: true }
      if (!batch.hasRoomForBytes(block.data)) break
      const part = partOf(block, next, end, batch.left)
      batch.add(part)
      next = part.next
      if (next >= stored.endSeqNum) this.#blocks.shift()
      if (part.ended || isExhausted(batch.left)) return { batch: batch.build(), next, ended: part.ended }
    }
    return { batch: batch.build(), next, ended: false }
  }

  /** The first of the blocks already read with a record from `position` to below `end`. */
  #current(position: number, end: number): StoredBlock | undefined {
    // The end may be inside a block, if the storage has merged blocks since the tail was read.
    if (position >= end) return undefined
    for (;;) {
      const block = this.#blocks[0]
      if (block === undefined || block.firstSeqNum >= end) return undefined
      if (block.endSeqNum > position && !this.#options.isExpired(block)) return block
      this.#blocks.shift()
    }
  }

  /** Does the same as `#current`, but reads from the storage, at `from` at first, if no block is left. */
  async #peek(
    from: ReadRange['from'],
    position: number,
    end: number,
    limits: ReadLimits,
  ): Promise<StoredBlock | undefined> {
    let start = from
    for (;;) {
      const block = this.#current(position, end)
      if (block !== undefined) return block
      const isOver = position >= end || ('seqNum' in start && start.seqNum >= end)
      if (this.#blocks.length > 0 || isOver) return undefined
      const blocks = await this.#load(start, end, limits)
      const last = blocks.at(-1)
      if (last === undefined) {
        if (!(await this.#log.exists())) throw deletedUnderReadError()
        return undefined
      }
      this.#blocks = [...blocks]
      start = { seqNum: last.endSeqNum }
    }
  }

  /** Resolves to the blocks from `from` on, enough for at least one batch; to none at the end. */
  async #load(from: ReadRange['from'], end: number, limits: ReadLimits): Promise<readonly StoredBlock[]> {
    const { share } = this.#options
    const ahead = 'seqNum' in from && from.seqNum === this.#ahead?.from ? this.#ahead : undefined
    // All blocks in it were delivered, and the batch of the last ones is not used any more.
    const free = this.#memory
    this.#ahead = undefined
    this.#memory = ahead?.memory
    let blocks = await ahead?.blocks
    // Nothing may have been read ahead although records were appended since.
    if (blocks === undefined || blocks.length === 0) {
      const { bytes, count } = withinBatch(limits)
      const countMax = Math.min(count, end - ('seqNum' in from ? from.seqNum : 0))
      const isSmall = Math.min(bytes, countMax * this.#log.recordBytes) <= SMALL_BYTES
      await share.acquire(readCost(REQUEST_BYTES_MAX, count), isSmall)
      blocks = await this.#request(from, end, limits)
    }
    const { count, meteredBytes } = sizeOf(blocks)
    if (count > 0) this.#log.recordBytes = meteredBytes / count
    share.resize(readCost(meteredBytes, count))
    if (this.#isRepeated) this.#readAhead(blocks, end, afterDelivering(limits, count, meteredBytes), free)
    this.#isRepeated = true
    return this.#log.codec.split(blocks)
  }

  /** Asks the storage for what follows these blocks, if it is wanted and there is memory for it. */
  #readAhead(
    before: readonly StoredBlock[],
    end: number,
    left: ReadLimits,
    free: Uint8Array | undefined,
  ): void {
    const last = before.at(-1)
    const isLast = last === undefined || last.endSeqNum >= end || last.lastTimestamp >= left.until
    if (isLast || isExhausted(left) || !this.#options.share.tryAdd(REQUEST_BYTES_MAX)) return
    const from = last.endSeqNum
    const memory = this.#reusesMemory ? (free ?? new Uint8Array(MEMORY_BYTES)) : undefined
    // Reading again tells why it failed.
    const blocks = this.#request({ seqNum: from }, end, left, memory).catch(() => [])
    this.#ahead = { from, blocks, memory }
  }

  #request(
    from: ReadRange['from'],
    endSeqNum: number,
    limits: ReadLimits,
    memory?: Uint8Array,
  ): Promise<readonly StoredBlock[]> {
    const { bytes, count } = withinBatch(limits)
    return this.#log.readBlocks({ from, endSeqNum, bytesMax: bytes, recordsMax: count, memory })
  }
}

class BatchBuilder {
  readonly #limits: ReadLimits
  readonly #parts: Uint8Array[] = []
  count = 0
  meteredBytes = 0
  #encodedBytes = 0
  #lastSeqNum = -1

  constructor(limits: ReadLimits) {
    this.#limits = limits
  }

  get left(): ReadLimits {
    return afterDelivering(this.#limits, this.count, this.meteredBytes)
  }

  /** Whether the block fits into the batch beside others. */
  hasRoomFor({ firstSeqNum, endSeqNum, meteredBytes }: StoredBlock): boolean {
    const count = this.count + endSeqNum - firstSeqNum
    const fits = count <= READ_RECORDS_MAX && this.meteredBytes + meteredBytes <= READ_METERED_BYTES_MAX
    return fits || this.count === 0
  }

  hasRoomForBytes(data: Uint8Array): boolean {
    return this.count === 0 || this.#encodedBytes + data.length <= BATCH_ENCODED_BYTES_MAX
  }

  add({ data, count, meteredBytes, lastSeqNum }: BlockPart): void {
    if (count === 0) return
    this.#parts.push(data)
    this.count += count
    this.meteredBytes += meteredBytes
    this.#encodedBytes += data.length
    this.#lastSeqNum = lastSeqNum
  }

  build(): ReadBatch | undefined {
    if (this.count === 0) return undefined
    const { count, meteredBytes } = this
    const records = new RecordBatch(undefined, this.#parts)
    return new ReadBatch(records, { count, meteredBytes, lastSeqNum: this.#lastSeqNum })
  }
}

/** The records that a read takes of a stored block. */
export interface BlockPart {
  readonly data: Uint8Array
  readonly count: number
  readonly meteredBytes: number
  /** -1 if there are none. */
  readonly lastSeqNum: number
  /** The sequence number at which the read continues. */
  readonly next: number
  /** Whether a limit forbids the next record. */
  readonly ended: boolean
}

/** Takes the records from `from` to below `end` that the limits admit: the block as it is, or a part. */
export function partOf(block: StoredBlock, from: number, end: number, limits: ReadLimits): BlockPart {
  const count = block.endSeqNum - block.firstSeqNum
  const { meteredBytes, lastTimestamp, data } = block
  const isWhole = block.firstSeqNum >= from && block.endSeqNum <= end
  if (isWhole && admitsAll(limits, { count, meteredBytes, lastTimestamp })) {
    const next = block.endSeqNum
    return { data, count, meteredBytes, lastSeqNum: next - 1, next, ended: false }
  }
  const spans = decodeStored(() => spansOf(block)).filter(({ seqNum }) => seqNum >= from && seqNum < end)
  const admitted = admit(limits, spans)
  const taken = spans.slice(0, admitted.count)
  const ended = admitted.count < spans.length
  const next = ended ? spans[admitted.count]!.seqNum : Math.min(block.endSeqNum, end)
  return { data: copyOf(data, taken), ...admitted, lastSeqNum: taken.at(-1)?.seqNum ?? -1, next, ended }
}

/** Copies the bytes of a few records, which must not keep the whole block in memory. */
function copyOf(data: Uint8Array, spans: readonly RecordSpan[]): Uint8Array {
  return spans.length === 0 ? EMPTY_BYTES : new Uint8Array(data.subarray(spans[0]!.start, spans.at(-1)!.end))
}

function sizeOf(blocks: readonly StoredBlock[]): { count: number; meteredBytes: number } {
  let [count, meteredBytes] = [0, 0]
  for (const block of blocks) {
    count += block.endSeqNum - block.firstSeqNum
    meteredBytes += block.meteredBytes
  }
  return { count, meteredBytes }
}
