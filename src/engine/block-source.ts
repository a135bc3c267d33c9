import { afterDelivering, isExhausted, type ReadLimits, withinBatches } from '../core/read-limits.ts'
import { READ_METERED_BYTES_MAX, READ_RECORDS_MAX } from '../model/limits.ts'
import type { ReadRange, StorageSession, StoredBlock } from '../storage/contract.ts'
import type { EngineContext } from './context.ts'
import { storageError } from './errors.ts'
import type { Ahead, ReadAhead } from './read-ahead.ts'

/** A storage that answers another process, as a browser's does, takes far less for one large answer than for several. */
const AHEAD_BATCHES = 4
const AHEAD_BATCHES_MAX = 8

/** Metered: batches of large records are fewer. */
const AHEAD_BYTES_MAX = 4 * READ_METERED_BYTES_MAX

/**
 * Where one read gets stored blocks from. Once it turns out to be longer than what it began with, or its count says so from the beginning, the storage is
 * asked for what comes next while the blocks before are delivered: for four batches at first, and for eight when those were wanted, too.
 */
export class BlockSource {
  readonly #session: StorageSession
  readonly #readAhead: ReadAhead
  readonly #logId: string
  #ahead: Ahead | undefined
  #isLong = false
  #aheadBatches = AHEAD_BATCHES
  #isClosed = false

  constructor({ session, readAhead }: Pick<EngineContext, 'session' | 'readAhead'>, logId: string) {
    this.#session = session
    this.#readAhead = readAhead
    this.#logId = logId
  }

  /** Blocks from there on, for at least one batch; none when there are none. */
  async blocks(
    from: ReadRange['from'],
    endSeqNum: number,
    limits: ReadLimits,
  ): Promise<readonly StoredBlock[]> {
    const blocks = (await this.#takeAhead(from)) ?? (await this.#ask(from, endSeqNum, limits, 1))
    if (limits.count > READ_RECORDS_MAX && limits.count < Number.POSITIVE_INFINITY) this.#isLong = true
    if (this.#isLong && !this.#isClosed) this.#askAhead(blocks, endSeqNum, limits)
    this.#isLong = true
    return blocks
  }

  /** A log that was deleted reads as empty, which must not be taken for its end. */
  async exists(): Promise<boolean> {
    return (await storageError(this.#session.head(this.#logId))) !== undefined
  }

  close(): void {
    this.#isClosed = true
    this.#ahead?.drop()
  }

  #ask(
    from: ReadRange['from'],
    endSeqNum: number,
    limits: ReadLimits,
    batches: number,
  ): Promise<readonly StoredBlock[]> {
    const { count, bytes } = withinBatches(limits, batches)
    const range = { from, endSeqNum, bytesMax: Math.min(bytes, AHEAD_BYTES_MAX), recordsMax: count }
    return storageError(this.#session.read(this.#logId, range))
  }

  #askAhead(blocks: readonly StoredBlock[], endSeqNum: number, limits: ReadLimits): void {
    const last = blocks.at(-1)
    if (last === undefined || last.endSeqNum >= endSeqNum || last.lastTimestamp >= limits.until) return
    const count = blocks.reduce((sum, block) => sum + block.endSeqNum - block.firstSeqNum, 0)
    const meteredBytes = blocks.reduce((sum, block) => sum + block.meteredBytes, 0)
    const left = afterDelivering(limits, count, meteredBytes)
    if (isExhausted(left)) return
    const from = last.endSeqNum
    const batches = this.#aheadBatches
    this.#aheadBatches = AHEAD_BATCHES_MAX
    this.#ahead = this.#readAhead.begin(from, () => this.#ask({ seqNum: from }, endSeqNum, left, batches))
  }

  /** Undefined also when there was nothing: what is there now decides. */
  async #takeAhead(from: ReadRange['from']): Promise<readonly StoredBlock[] | undefined> {
    const ahead = this.#ahead
    this.#ahead = undefined
    if (ahead === undefined || !('seqNum' in from) || ahead.from !== from.seqNum) {
      ahead?.drop()
      return undefined
    }
    const blocks = await ahead.take()
    return blocks?.length === 0 ? undefined : blocks
  }
}
