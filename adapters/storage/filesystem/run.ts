import type { Segment } from './segment.ts'
import { addRange, type SeqRange, type SeqRanges } from './seq-ranges.ts'

/** From this size on a run is read in large pieces wherever it lies. */
const LARGE_RUN_BYTES = 1_048_576

/** A run as it is written down. */
export interface RunFacts {
  /** Number of the segment. */
  readonly segment: number
  readonly offset: number
  /** Of chunks and index. */
  readonly bytes: number
  /** 0 when there is one chunk, which needs none. */
  readonly indexBytes: number
  readonly firstSeqNum: number
  readonly endSeqNum: number
  readonly lastTimestamp: number
  /** That are not freed. */
  readonly blocks: number
  /** Of the blocks that are not freed. */
  readonly meteredBytes: number
  /** What the blocks that are not freed take of the file, about. */
  readonly liveBytes: number
  /** No block that is not freed expires earlier; null when none expires. */
  readonly minExpiry: number | null
  /** The last block has expired then; null when one never does. */
  readonly maxExpiry: number | null
  /** What was freed. */
  readonly holes: SeqRanges
}

/** Consecutive blocks of a log that were freed. */
export interface FreedRange extends SeqRange {
  readonly blocks: number
  readonly meteredBytes: number
  readonly bytes: number
}

/** Blocks of a log that lie together in one segment, and follow each other. */
export class Run implements RunFacts {
  readonly home: Segment
  readonly offset: number
  readonly bytes: number
  readonly indexBytes: number
  readonly firstSeqNum: number
  readonly endSeqNum: number
  readonly lastTimestamp: number
  readonly maxExpiry: number | null
  blocks: number
  meteredBytes: number
  liveBytes: number
  minExpiry: number | null
  holes: SeqRanges

  constructor(home: Segment, facts: RunFacts) {
    this.home = home
    this.offset = facts.offset
    this.bytes = facts.bytes
    this.indexBytes = facts.indexBytes
    this.firstSeqNum = facts.firstSeqNum
    this.endSeqNum = facts.endSeqNum
    this.lastTimestamp = facts.lastTimestamp
    this.blocks = facts.blocks
    this.meteredBytes = facts.meteredBytes
    this.liveBytes = facts.liveBytes
    this.minExpiry = facts.minExpiry
    this.maxExpiry = facts.maxExpiry
    this.holes = facts.holes
  }

  get segment(): number {
    return this.home.number
  }

  /** Whether merging it with others would gain nothing. */
  get isLarge(): boolean {
    return this.bytes >= LARGE_RUN_BYTES || this.home.isAdopted
  }

  /** Where what was not freed begins, as far as that is known. */
  get liveFrom(): number {
    const [first] = this.holes
    return first !== undefined && first.from <= this.firstSeqNum ? first.to : this.firstSeqNum
  }

  /** Throws `RangeError` for more than there is: a range that was counted in another measure would take what is wanted with it. */
  free(range: FreedRange): void {
    const blocks = this.blocks - range.blocks
    const meteredBytes = this.meteredBytes - range.meteredBytes
    if (blocks < 0 || meteredBytes < 0 || (blocks === 0 && meteredBytes > 0)) {
      throw new RangeError(
        `of ${this.blocks} blocks with ${this.meteredBytes} bytes, ${range.blocks} with ${range.meteredBytes} cannot be freed`,
      )
    }
    this.holes = addRange(this.holes, range)
    this.blocks = blocks
    this.meteredBytes = meteredBytes
    this.liveBytes -= range.bytes
    this.home.liveBytes -= range.bytes
  }
}
