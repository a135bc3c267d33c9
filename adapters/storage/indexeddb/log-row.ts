import type { Head } from '../../../src/storage/contract.ts'
import type { Page } from './page.ts'

/** What there is to know of a log but for what is behind this row (`append-row.ts`). Persisted: keep stable. */
export interface LogRow {
  /** Counts the writes of the row: whoever has the row of this revision knows that it is the one that is stored. */
  readonly revision: number
  readonly head: Head
  /** Of all blocks of the log. */
  readonly meteredBytes: number
  /** The latest blocks, while they are small; all pages are in front of them. */
  readonly tail: Page
  /** Blocks wholly below were freed because they were trimmed. */
  readonly freedBelow: number
  /** The times of its chores `expired` and `trimmed`; absent is none. Not later than they need to be. */
  readonly expiryChoreAt?: number
  readonly trimChoreAt?: number
}

/** Where the tail begins. */
export function endOfPages({ head, tail }: LogRow): number {
  return tail.numbers[0] ?? head.tail.seqNum
}
