import type { Head } from '../../../src/storage/contract.ts'
import { type BlockSummary, earliestExpiry, type Page } from './page.ts'

/** What there is to know of a log but for what is behind this row (`append-row.ts`). Persisted: keep stable. */
export interface LogRow extends Partial<ChoreTimes> {
  /** Another whenever what is known of the log is of no use any more: never one that it had before, nor a log of that id that was deleted. */
  readonly revision: number
  /** Before what is behind the row. */
  readonly head: Head
  /** Of all blocks of the log, but for those behind the row. */
  readonly meteredBytes: number
  /** The latest blocks of that head, while they are small; all pages are in front of them. */
  readonly tail: Page
  /** Blocks wholly below were freed because they were trimmed. */
  readonly freedBelow: number
}

/** The times of a log's chores `expired` and `trimmed`; undefined is none. Not later than they need to be. */
export interface ChoreTimes {
  readonly expiryChoreAt: number | undefined
  readonly trimChoreAt: number | undefined
}

/**
 * When a log has to be listed for what is behind its pages: these blocks, too, and the trims of its head. What is listed too early stays: looking for nothing
 * once costs less than writing each time.
 */
export function listedFor(
  listed: Partial<ChoreTimes>,
  blocks: readonly BlockSummary[],
  log: Pick<LogRow, 'head' | 'freedBelow'>,
): ChoreTimes {
  return {
    expiryChoreAt: earlier(listed.expiryChoreAt, earliestExpiry(blocks)),
    trimChoreAt: earlier(listed.trimChoreAt, dueTrim(log)),
  }
}

/** The time of the first trim below which blocks may be left. */
export function dueTrim({ head, freedBelow }: Pick<LogRow, 'head' | 'freedBelow'>): number | undefined {
  return head.trims.find(({ point }) => point > freedBelow)?.at
}

function earlier(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || (b !== undefined && b < a) ? b : a
}

/** Where the tail begins. */
export function endOfPages({ head, tail }: LogRow): number {
  return tail.numbers[0] ?? head.tail.seqNum
}
