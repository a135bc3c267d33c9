import type { AppendRequest, StoredBlock } from '../../../src/storage/contract.ts'
import { type ChoreTimes, type LogRow, listedFor } from './log-row.ts'
import { type BlockSummary, pageOf, sizeInPage } from './page.ts'
import { blocksIn } from './page-row.ts'
import type { Chore } from './schema.ts'
import { pagesOf, type StoredPage } from './stored-page.ts'

/** A tail that would become larger becomes a page: whoever wants the head reads the tail with it. */
const TAIL_BYTES_MAX = 2 * 1024

/** A row as it should become, and what else is written with it. */
export interface LogWrite {
  readonly row: LogRow
  readonly pages: readonly StoredPage[]
  readonly choresAdded: readonly Chore[]
  readonly choresRemoved: readonly Chore[]
}

/**
 * The row after appends of which each expects the head that the one before leaves, the first the row's. At least one. Throws `StorageFailure` of kind
 * `corrupt` when the tail is damaged.
 */
export function appendAll(logId: string, row: LogRow, appends: readonly AppendRequest[]): LogWrite {
  const added = appends.map(({ block }) => block)
  const { tail, pages } = settled(logId, [...blocksIn(logId, row.tail), ...added])
  const next: LogRow = {
    ...row,
    revision: row.revision + 1,
    head: appends.at(-1)!.head,
    meteredBytes: row.meteredBytes + meteredBytesOf(added),
    tail: pageOf(tail),
  }
  return { ...relist(logId, row, next, listedFor(row, tail, next)), pages }
}

/** The latest blocks of a log, in its row or in pages. */
export function settled(logId: string, blocks: readonly StoredBlock[]) {
  const fits = blocks.reduce((bytes, block) => bytes + sizeInPage(block), 0) <= TAIL_BYTES_MAX
  return fits ? { tail: blocks, pages: [] } : { tail: [], pages: pagesOf(logId, blocks) }
}

export function meteredBytesOf(blocks: readonly BlockSummary[]): number {
  return blocks.reduce((sum, { meteredBytes }) => sum + meteredBytes, 0)
}

/** A row with the times at which it is to be listed, and what changes with them. */
export function relist(
  logId: string,
  before: LogRow,
  next: LogRow,
  times: ChoreTimes,
): Omit<LogWrite, 'pages'> {
  const { expiryChoreAt: _, trimChoreAt: __, ...rest } = next
  const { expiryChoreAt, trimChoreAt } = times
  const row: LogRow = {
    ...rest,
    ...(expiryChoreAt !== undefined && { expiryChoreAt }),
    ...(trimChoreAt !== undefined && { trimChoreAt }),
  }
  const old = choresOf(logId, before)
  const wanted = choresOf(logId, row)
  const lacks = (list: readonly Chore[]) => (chore: Chore) =>
    !list.some(([kind, at]) => kind === chore[0] && at === chore[1])
  return { row, choresAdded: wanted.filter(lacks(old)), choresRemoved: old.filter(lacks(wanted)) }
}

/** Those under which the log is listed. */
export function choresOf(logId: string, { expiryChoreAt, trimChoreAt }: LogRow): Chore[] {
  const chores: Chore[] = []
  if (expiryChoreAt !== undefined) chores.push(['expired', expiryChoreAt, logId])
  if (trimChoreAt !== undefined) chores.push(['trimmed', trimChoreAt, logId])
  return chores
}
