import { afterDelivering, isExhausted, type ReadLimits, withinBatches } from '../../core/read-limits.ts'
import { READ_METERED_BYTES_MAX, READ_RECORDS_MAX } from '../../model/limits.ts'
import { isPromise } from '../../runtime/maybe-promise.ts'
import type { ReadRange, StorageSession, StoredBlock } from '../../storage/contract.ts'
import { type ReadBudget, type ReadShare, readCost } from './read-budget.ts'
import type { RecordCodec } from './record-codec.ts'

/**
 * How many batches are read ahead at first, and later: one large request costs far less than several small
 * ones.
 */
const AHEAD_BATCHES = 4
const AHEAD_BATCHES_MAX = 8
/** In metered bytes. */
const AHEAD_BYTES_MAX = 4 * READ_METERED_BYTES_MAX

/**
 * Reads the stored blocks of one read. A read that takes more than one batch, or has a count beyond one
 * batch, is read ahead: the storage is asked for the next blocks while those before are delivered, for four
 * batches at first, and for eight once those are used.
 */
export class BlockSource {
  /** Whether nothing else refers to the memory of the blocks. */
  readonly ownsBlocks: boolean
  readonly #session: Pick<StorageSession, 'read' | 'head'>
  readonly #readAhead: ReadAhead
  readonly #logId: string
  readonly #codec: Pick<RecordCodec, 'split'>
  readonly #share: ReadShare
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
    ownsBlocks = false,
  ) {
    this.ownsBlocks = ownsBlocks
    this.#session = session
    this.#readAhead = readAhead
    this.#logId = logId
    this.#codec = codec
    this.#share = share
  }

  /** Resolves to the blocks from `from` on, split, enough for at least one batch; to none at the end. */
  async blocks(
    from: ReadRange['from'],
    endSeqNum: number,
    limits: ReadLimits,
  ): Promise<readonly StoredBlock[]> {
    const ahead = this.#ahead && (await this.#takeAhead(this.#ahead, from))
    const blocks = ahead ?? (await this.#readBatch(from, endSeqNum, limits))
    this.#share.correct(costOf(blocks))
    if (limits.count > READ_RECORDS_MAX && limits.count < Number.POSITIVE_INFINITY) this.#isLong = true
    if (this.#isLong && !this.#isClosed) this.#beginAhead(blocks, endSeqNum, limits)
    this.#isLong = true
    return this.#codec.split(blocks)
  }

  /** Tells the end of a log from a deleted one, which reads as empty. */
  async exists(): Promise<boolean> {
    return (await this.#session.head(this.#logId)) !== undefined
  }

  close(): void {
    this.#isClosed = true
    this.#ahead?.drop()
  }

  async #readBatch(
    from: ReadRange['from'],
    endSeqNum: number,
    limits: ReadLimits,
  ): Promise<readonly StoredBlock[]> {
    const { bytes, count } = withinBatches(limits, 1)
    const held = this.#share.hold(readCost(bytes, count))
    if (isPromise(held)) await held
    return this.#read(from, endSeqNum, limits, 1)
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
    this.#ahead = undefined
    if (!('seqNum' in from) || ahead.from !== from.seqNum) {
      ahead.drop()
      return undefined
    }
    const blocks = await ahead.take()
    return blocks?.length === 0 ? undefined : blocks
  }
}

function costOf(blocks: readonly StoredBlock[]): number {
  let bytes = 0
  let count = 0
  for (const block of blocks) {
    bytes += block.meteredBytes
    count += block.endSeqNum - block.firstSeqNum
  }
  return readCost(bytes, count)
}

/** How many reads of an engine may have blocks read ahead: each at most 4 MiB metered, and 8,000 records. */
const WAITING_MAX = 16

/** Blocks that a read probably wants next. */
export interface Ahead {
  /** The sequence number from which they are read. */
  readonly from: number
  /**
   * Resolves to undefined when they could not be read or are no longer kept; reading again gives the reason.
   */
  take(): Promise<readonly StoredBlock[] | undefined>
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
    share.correct(AHEAD_BYTES_MAX)
    let blocks: Promise<readonly StoredBlock[] | undefined> | undefined = read().catch(() => undefined)
    const ahead: Ahead = {
      from,
      async take() {
        const taken = blocks
        ahead.drop()
        return taken
      },
      drop() {
        blocks = undefined
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
