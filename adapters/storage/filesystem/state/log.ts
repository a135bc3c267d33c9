import { extendedExpiry, type Trim } from '../../../../src/core/retention.ts'
import type { Head, StoredBlock } from '../../../../src/storage/contract.ts'
import { earliestExpiry, type Run } from './segment.ts'

/** A block without its data. */
export type BlockFacts = Omit<StoredBlock, 'data'>

export interface JournalFile {
  readonly number: number
  readonly salt: number
}

/** The place of a block that is still in a journal, and what reads need to know about it. */
export interface JournalBlock {
  readonly journal: JournalFile
  /** Offset of its frame, in bytes. */
  readonly offset: number
  /** Length of its frame, in bytes. */
  readonly bytes: number
  readonly firstSeqNum: number
  readonly endSeqNum: number
  readonly lastTimestamp: number
  readonly meteredBytes: number
  readonly expiresAt: number | null
}

/** Shared by the many logs without blocks in journals. Never written to. */
export const NO_JOURNAL_BLOCKS: readonly JournalBlock[] = []
const NO_RUNS: readonly Run[] = []

/** One log: its head and where its blocks are. Runs come before the blocks in journals. */
export class Log {
  readonly number: number
  readonly id: string
  head: Head
  /** Replaced, never modified: a read continues with the array it began with. */
  runs: readonly Run[] = NO_RUNS
  /** Replaced or appended to, never modified otherwise. */
  blocks: readonly JournalBlock[] = NO_JOURNAL_BLOCKS
  /** Metered bytes of the blocks that are not freed. */
  meteredBytes = 0
  /** A lower bound of when blocks expire, in milliseconds; infinite if none does. */
  nextExpiry = Number.POSITIVE_INFINITY
  /** Everything that could be freed below this trim point is. */
  reclaimedPoint = 0

  constructor(number: number, id: string, head: Head) {
    this.number = number
    this.id = id
    this.head = head
  }

  /** A copy whose changes do not affect this one, except those of its runs. */
  clone(): Log {
    const copy = new Log(this.number, this.id, this.head)
    copy.runs = this.runs
    copy.blocks = this.blocks.length === 0 ? NO_JOURNAL_BLOCKS : this.blocks.slice()
    copy.meteredBytes = this.meteredBytes
    copy.nextExpiry = this.nextExpiry
    copy.reclaimedPoint = this.reclaimedPoint
    return copy
  }

  add(block: JournalBlock): void {
    if (this.blocks.length === 0) this.blocks = [block]
    else (this.blocks as JournalBlock[]).push(block)
    this.meteredBytes += block.meteredBytes
    this.nextExpiry = Math.min(this.nextExpiry, block.expiresAt ?? this.nextExpiry)
  }

  /** Recomputes {@link nextExpiry} after blocks were freed. */
  updateNextExpiry(): void {
    const { extensions } = this.head
    let next = Number.POSITIVE_INFINITY
    for (const run of this.runs) next = Math.min(next, this.expiryOf(run))
    for (const block of this.blocks) next = Math.min(next, extendedExpiry(block, extensions) ?? next)
    this.nextExpiry = next
  }

  /** A lower bound of when blocks of a run expire; infinite if none does. */
  expiryOf(run: Run): number {
    return Math.max(earliestExpiry(run, this.head.extensions), run.keptUntil)
  }

  /** The time of the earliest trim that may still have blocks below it. */
  get nextTrim(): number | undefined {
    const { trims } = this.head
    if (trims.length === 0) return undefined
    const first = this.runs[0]?.liveFrom ?? this.blocks[0]?.firstSeqNum
    return first === undefined ? undefined : nextTrimOf(trims, first, this.reclaimedPoint)
  }
}

/** The time of the earliest trim above `reclaimedPoint` and `first`, where the first block begins. */
export function nextTrimOf(trims: readonly Trim[], first: number, reclaimedPoint = 0): number | undefined {
  let next: number | undefined
  for (const { point, at } of trims) {
    // If the clock was set back, a later trim has an earlier time.
    if (point > reclaimedPoint && point > first) next = Math.min(next ?? at, at)
  }
  return next
}
