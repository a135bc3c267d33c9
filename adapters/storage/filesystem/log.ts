import type { Head, StoredBlock } from '../../../src/storage/contract.ts'
import type { Run } from './run.ts'

/** A block without its bytes. */
export type BlockFacts = Omit<StoredBlock, 'data'>

export interface JournalFile {
  readonly number: number
  readonly salt: number
}

/** Where a block lies that is in a journal still, and what has to be known of it without reading it. */
export interface JournalBlock {
  readonly journal: JournalFile
  /** Of its frame. */
  readonly offset: number
  /** Of its frame. */
  readonly bytes: number
  readonly firstSeqNum: number
  readonly endSeqNum: number
  readonly lastTimestamp: number
  readonly meteredBytes: number
  readonly expiresAt: number | null
}

/** Shared by the many logs that have none; never written to. */
export const NO_BLOCKS: readonly JournalBlock[] = []
const NO_RUNS: readonly Run[] = []

/** One log: its head, and where its blocks are. Runs come first, then what is in the journals. */
export class Log {
  readonly number: number
  readonly id: string
  head: Head
  /** Replaced, never changed: whoever reads goes on with what was there when it began. */
  runs: readonly Run[] = NO_RUNS
  /** Replaced or added to, never changed otherwise. */
  blocks: readonly JournalBlock[] = NO_BLOCKS
  /** Of the blocks that are kept. */
  meteredBytes = 0
  /** No block expires earlier; infinite when none does. */
  nextExpiry = Number.POSITIVE_INFINITY
  /** Up to this trim point everything that could be freed was. */
  settledPoint = 0

  constructor(number: number, id: string, head: Head) {
    this.number = number
    this.id = id
    this.head = head
  }

  add(block: JournalBlock): void {
    if (this.blocks.length === 0) this.blocks = [block]
    else (this.blocks as JournalBlock[]).push(block)
    this.meteredBytes += block.meteredBytes
    this.nextExpiry = Math.min(this.nextExpiry, block.expiresAt ?? this.nextExpiry)
  }

  /** After blocks were freed. */
  findNextExpiry(): void {
    let next = Number.POSITIVE_INFINITY
    for (const { minExpiry } of this.runs) next = Math.min(next, minExpiry ?? next)
    for (const { expiresAt } of this.blocks) next = Math.min(next, expiresAt ?? next)
    this.nextExpiry = next
  }

  /** When a trim was made below which there may be blocks still. */
  get nextTrim(): number | undefined {
    if (this.head.trims.length === 0) return undefined
    const first = this.runs[0]?.liveFrom ?? this.blocks[0]?.firstSeqNum
    if (first === undefined) return undefined
    let next: number | undefined
    for (const { point, at } of this.head.trims) {
      // After a clock went back, a later trim has an earlier time.
      if (point > this.settledPoint && point > first) next = Math.min(next ?? at, at)
    }
    return next
  }
}
