import { afterDelivering, isExhausted, type ReadLimits, withinBatches } from '../../core/read-plan.ts'
import { READ_METERED_BYTES_MAX, READ_RECORDS_MAX } from '../../model/limits.ts'
import { isPromise } from '../../runtime/maybe-promise.ts'
import type { ReadRange, StorageSession, StoredBlock } from '../../storage/contract.ts'
import { type ReadBudget, type ReadShare, readCost } from './read-budget.ts'
import { expectedBytes, SMALL_BYTES } from './read-scheduler.ts'
import type { RecordCodec } from './record-codec.ts'

/**
 * How many batches are read ahead at first, and later: one large request costs far less than several small
 * ones.
 */
const AHEAD_BATCHES = 4
const AHEAD_BATCHES_MAX = 8
/** The most that is read ahead, in metered bytes. */
const AHEAD_BYTES_MAX = 4 * READ_METERED_BYTES_MAX

/** The size of the records of a log, as far as is known. */
export interface RecordSizes {
  /** The metered bytes of a record: the mean of those that were appended or read last. */
  recordBytes: number
}

/**
 * Reads the stored blocks of one read. A read that takes more than one batch, or has a count beyond one
 * batch, is read ahead: the storage is asked for the next blocks while those before are delivered, for four
 * batches at first, and for eight once those are used.
 */
export class BlockSource {
  readonly #session: Pick<StorageSession, 'read' | 'head'>
  readonly #readAhead: ReadAhead
  readonly #logId: string
  readonly #codec: Pick<RecordCodec, 'split'>
  readonly #share: ReadShare
  readonly #sizes: RecordSizes
  #ahead: Ahead | undefined
  #isLong = false
  #aheadBatches = AHEAD_BATCHES
  #isClosed = false

  constructor(
    session: Pick<StorageSession, 'read' | 'head'>,
    readAhead: ReadAhead,
    logId: string,
    codec: Pick<RecordCodec, 'split'>,
    share: ReadShare,
    sizes: RecordSizes,
  ) {
    this.#session = session
    this.#readAhead = readAhead
    this.#logId = logId
    this.#codec = codec
    this.#share = share
    this.#sizes = sizes
  }

  /** Resolves to the blocks from `from` on, split, enough for at least one batch; to none at the end. */
  async blocks(
    from: ReadRange['from'],
    endSeqNum: number,
    limits: ReadLimits,
  ): Promise<readonly StoredBlock[]> {
    const ahead = this.#ahead && (await this.#takeAhead(this.#ahead, from))
    const count = endSeqNum - ('seqNum' in from ? from.seqNum : 0)
    const isSmall = expectedBytes(count, limits, this.#sizes.recordBytes) <= SMALL_BYTES
    const blocks =
      ahead ??
      (await this.#readBatch(from, endSeqNum, limits, isSmall)) ??
      (await this.#readBatch(from, endSeqNum, limits, false))!
    if (limits.count > READ_RECORDS_MAX && limits.count < Number.POSITIVE_INFINITY) this.#isLong = true
    if (this.#isLong && !this.#isClosed) this.#beginAhead(blocks, endSeqNum, limits)
    this.#isLong = true
    return this.#codec.split(blocks)
  }

  /** Tells the end of a log from a deleted one, which reads as empty. */
  async exists(): Promise<boolean> {
    return (await this.#session.head(this.#logId)) !== undefined
  }

  /** Drops what was read ahead. */
  forget(): void {
    this.#ahead?.drop()
    this.#ahead = undefined
  }

  close(): void {
    this.#isClosed = true
    this.forget()
  }

  /**
   * The storage stops after the block that reaches the limit, which has up to 1 MiB. Resolves to undefined if
   * the read was expected to be small, and there is no room for what it is.
   */
  async #readBatch(
    from: ReadRange['from'],
    endSeqNum: number,
    limits: ReadLimits,
    isSmall: boolean,
  ): Promise<readonly StoredBlock[] | undefined> {
    const { bytes, count } = withinBatches(limits, 1)
    const held = this.#share.hold(readCost(bytes + READ_METERED_BYTES_MAX, count), isSmall)
    if (isPromise(held)) await held
    const blocks = await this.#read(from, endSeqNum, limits, 1)
    return this.#keep(blocks) ? blocks : undefined
  }

  /** Counts blocks instead of what was held for them. Returns false if there is no room. */
  #keep(blocks: readonly StoredBlock[]): boolean {
    let bytes = 0
    let count = 0
    for (const block of blocks) {
      bytes += block.meteredBytes
      count += block.endSeqNum - block.firstSeqNum
    }
    if (count > 0) this.#sizes.recordBytes = bytes / count
    return this.#share.correct(readCost(bytes, count))
  }

  #read(
    from: ReadRange['from'],
    endSeqNum: number,
    limits: ReadLimits,
    batches: number,
  ): Promise<readonly StoredBlock[]> {
    const { count, bytes } = withinBatches(limits, batches)
    const range = { from, endSeqNum, bytesMax: Math.min(bytes, AHEAD_BYTES_MAX), recordsMax: count }
    return this.#session.read(this.#logId, range)
  }

  #beginAhead(blocks: readonly StoredBlock[], endSeqNum: number, limits: ReadLimits): void {
    const last = blocks.at(-1)
    if (last === undefined || last.endSeqNum >= endSeqNum || last.lastTimestamp >= limits.until) return
    const count = blocks.reduce((sum, block) => sum + block.endSeqNum - block.firstSeqNum, 0)
    const meteredBytes = blocks.reduce((sum, block) => sum + block.meteredBytes, 0)
    const left = afterDelivering(limits, count, meteredBytes)
    if (isExhausted(left)) return
    const from = last.endSeqNum
    const batches = this.#aheadBatches
    this.#aheadBatches = AHEAD_BATCHES_MAX
    this.#ahead = this.#readAhead.begin(from, () => this.#read({ seqNum: from }, endSeqNum, left, batches))
  }

  /** Undefined also when nothing was found: records may have been appended since. */
  async #takeAhead(ahead: Ahead, from: ReadRange['from']): Promise<readonly StoredBlock[] | undefined> {
    const isWanted = 'seqNum' in from && ahead.from === from.seqNum
    const blocks = isWanted ? await ahead.blocks : undefined
    const isKept = blocks !== undefined && blocks.length > 0 && this.#keep(blocks)
    this.forget()
    return isKept ? blocks : undefined
  }
}

/** How many reads of an engine may have blocks read ahead: each at most 4 MiB metered, and 8,000 records. */
const WAITING_MAX = 16

/** Blocks that a read probably wants next. */
export interface Ahead {
  /** The sequence number from which they are read. */
  readonly from: number
  /**
   * Undefined when they are no longer kept. Resolves to undefined when they could not be read: reading again
   * gives the reason.
   */
  readonly blocks: Promise<readonly StoredBlock[] | undefined> | undefined
  drop(): void
}

/** The blocks read ahead by all reads of an engine. Beyond the limit, the oldest are dropped. */
export class ReadAhead {
  readonly #budget: ReadBudget
  /** Oldest first. */
  readonly #waiting = new Set<Ahead>()

  constructor(budget: ReadBudget) {
    this.#budget = budget
  }

  /** Undefined if memory is short: a read then takes one batch at a time. */
  begin(from: number, read: () => Promise<readonly StoredBlock[]>): Ahead | undefined {
    if (this.#budget.isShort) return undefined
    const waiting = this.#waiting
    const share = this.#budget.open(() => ahead.drop())
    share.correct(AHEAD_BYTES_MAX + READ_METERED_BYTES_MAX)
    const ahead = {
      from,
      blocks: read().catch(() => undefined) as Ahead['blocks'],
      drop() {
        ahead.blocks = undefined
        waiting.delete(ahead)
        share.close()
      },
    }
    waiting.add(ahead)
    if (waiting.size > WAITING_MAX) {
      const [oldest] = waiting
      oldest!.drop()
    }
    return ahead
  }
}
