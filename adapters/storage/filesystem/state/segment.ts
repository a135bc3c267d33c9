import { extendedExpiry, type RetentionExtension } from '../../../../src/core/retention.ts'
import { addRange, type SeqRange, type SeqRanges } from './seq-ranges.ts'

/** The size from which moving a run closer to others does not make reads faster. */
const LARGE_RUN_BYTES = 1_048_576

/** A segment as it is persisted. */
export interface SegmentFacts {
  readonly number: number
  readonly salt: number
  /** Length up to its end; an adopted journal may contain more after it. */
  readonly bytes: number
  /**
   * Number of the adopted journal, in which each run is the frame of one append; 0 for a file written as a
   * segment.
   */
  readonly journal: number
}

/** How much of a segment is in use. */
export interface SegmentUse {
  readonly runs: number
  /** Approximate bytes of the file that are in use. */
  readonly liveBytes: number
  readonly smallRuns: number
  /** Bytes of the small runs. */
  readonly smallBytes: number
}

/** Segments among which no log has several small runs. */
export interface Bundle {
  /** The size class in which they count as one segment. */
  readonly level: number
}

/** An immutable file of runs, and how much of it is still in use. */
export class Segment implements SegmentFacts, SegmentUse {
  readonly number: number
  readonly salt: number
  readonly bytes: number
  readonly journal: number
  runs = 0
  liveBytes = 0
  smallRuns = 0
  smallBytes = 0
  /**
   * Set when compaction fails to read the segment, which then stays as it is: it must not keep others from
   * being compacted.
   */
  isUnreadable = false
  /** Set by compaction, which looks for small runs to join only among several bundles. Not persisted. */
  bundle: Bundle | undefined

  constructor({ number, salt, bytes, journal }: SegmentFacts) {
    this.number = number
    this.salt = salt
    this.bytes = bytes
    this.journal = journal
  }

  /** Sets the use that a checkpoint recorded. */
  restore({ runs, liveBytes, smallRuns, smallBytes }: SegmentUse): void {
    this.runs = runs
    this.liveBytes = liveBytes
    this.smallRuns = smallRuns
    this.smallBytes = smallBytes
  }

  get isAdopted(): boolean {
    return this.journal > 0
  }

  add(run: Run): void {
    this.runs++
    this.liveBytes += run.liveBytes
    if (run.isLarge) return
    this.smallRuns++
    this.smallBytes += run.bytes
  }

  remove(run: Run): void {
    this.runs--
    this.liveBytes -= run.liveBytes
    if (run.isLarge) return
    this.smallRuns--
    this.smallBytes -= run.bytes
  }
}

/** A run as it is persisted. */
export interface RunFacts {
  /** Number of its segment. */
  readonly segment: number
  readonly offset: number
  /** Length of its chunks and its index. */
  readonly bytes: number
  /** Length of its index; 0 for a single chunk, which needs none. */
  readonly indexBytes: number
  readonly firstSeqNum: number
  readonly endSeqNum: number
  readonly lastTimestamp: number
  /** Number of blocks that are not freed. */
  readonly blocks: number
  /** Metered bytes of the blocks that are not freed. */
  readonly meteredBytes: number
  /** Approximate bytes of the file that its blocks take, freed ones excluded. */
  readonly liveBytes: number
  /** A lower bound of when blocks expire that are not freed; null if none does. */
  readonly minExpiry: number | null
  /** The time at which the last block expires; null if one never does. */
  readonly maxExpiry: number | null
  /** Ranges that were freed. */
  readonly holes: SeqRanges
}

/** Freed blocks that follow each other in a log. */
export interface FreedRange extends SeqRange {
  readonly blocks: number
  readonly meteredBytes: number
  readonly bytes: number
}

/** Consecutive blocks of a log that are contiguous in one segment. */
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
  /** No block that is not freed expires before it, because of extensions. Not persisted. */
  keptUntil = 0

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

  /** Whether compacting it with others would gain nothing. */
  get isLarge(): boolean {
    return this.bytes >= LARGE_RUN_BYTES || this.home.isAdopted
  }

  /** Lower bound of the first sequence number that is not freed. */
  get liveFrom(): number {
    return liveFromOf(this)
  }

  /**
   * Marks a range as freed. Throws `RangeError` if it counts more than the run has: such a range would take
   * records along that are still in use.
   */
  free(range: FreedRange): void {
    const blocks = this.blocks - range.blocks
    const meteredBytes = this.meteredBytes - range.meteredBytes
    if (blocks < 0 || meteredBytes < 0 || (blocks === 0 && meteredBytes > 0)) {
      throw new RangeError(
        `cannot free ${range.blocks} blocks with ${range.meteredBytes} bytes of ${this.blocks} with ${this.meteredBytes}`,
      )
    }
    this.holes = addRange(this.holes, range)
    this.blocks = blocks
    this.meteredBytes = meteredBytes
    this.liveBytes -= range.bytes
    this.home.liveBytes -= range.bytes
  }
}

/**
 * A lower bound of when blocks expire that end at or before `endSeqNum`, none before `minExpiry` without the
 * extensions; infinite if none does.
 */
export function earliestExpiry(
  { endSeqNum, minExpiry }: Pick<RunFacts, 'endSeqNum' | 'minExpiry'>,
  extensions: readonly RetentionExtension[] | undefined,
): number {
  const last = { firstSeqNum: endSeqNum - 1, expiresAt: minExpiry }
  return extendedExpiry(last, extensions) ?? Number.POSITIVE_INFINITY
}

export function liveFromOf({ firstSeqNum, holes }: Pick<RunFacts, 'firstSeqNum' | 'holes'>): number {
  const [first] = holes
  return first !== undefined && first.from <= firstSeqNum ? first.to : firstSeqNum
}

/** The earliest of the times; null stands for never. */
export function earliest(times: readonly (number | null)[]): number | null {
  return times.reduce((min, time) => (min === null || (time !== null && time < min) ? time : min), null)
}
