import { encodePage } from './page.ts'
import { readBlocks } from './page-row.ts'
import type { LogRow, TailKey, TailRow } from './schema.ts'
import type { Transaction } from './transactions.ts'

/** A log as stored, except for its pages. */
export interface StoredLog {
  readonly row: LogRow
  /** In order. */
  readonly tailRows: readonly TailRow[]
}

export function markerKey(logId: string, revision: number): TailKey {
  return [logId, -1, revision]
}

/** The keys of the tail rows of a log row, optionally from a sequence number on. */
export function tailRange(logId: string, { head }: LogRow, fromSeqNum = 0): IDBKeyRange {
  // Below the head are deleted tail rows of earlier revisions, which Chromium would scan one by one.
  return IDBKeyRange.bound([logId, Math.max(head.tail.seqNum, fromSeqNum)], [logId, []])
}

export async function lastTailRow(
  transaction: Transaction,
  logId: string,
  row: LogRow,
): Promise<TailRow | undefined> {
  const rows = transaction.objectStore('appends')
  // Skips rows of stale revisions.
  const last = await rows.findLast(tailRange(logId, row), ({ revision }) => revision === row.revision)
  return last as TailRow | undefined
}

/** All tail rows in order, optionally from a sequence number on. */
export async function readTailRows(
  transaction: Transaction,
  logId: string,
  row: LogRow,
  fromSeqNum?: number,
): Promise<TailRow[]> {
  const found = await transaction.objectStore('appends').getAll(tailRange(logId, row, fromSeqNum))
  return (found as TailRow[]).filter(({ revision }) => revision === row.revision)
}

/** Whether the log row takes tail rows. One that an older version of the library wrote does not. */
export async function hasMarker(transaction: Transaction, logId: string, revision: number): Promise<boolean> {
  return (await transaction.objectStore('appends').getKey(markerKey(logId, revision))) !== undefined
}

export async function readLog(transaction: Transaction, logId: string): Promise<StoredLog | undefined> {
  const row = await transaction.objectStore('logs').get(logId)
  return row && { row, tailRows: await readTailRows(transaction, logId, row) }
}

/**
 * The log row with its tail rows merged into it. Throws `StorageFailure` (`corrupt`) if any of them is
 * damaged.
 */
export function foldTailRows(logId: string, { row, tailRows }: StoredLog): LogRow {
  const last = tailRows.at(-1)
  if (last === undefined) return row
  const blocks = [row.tail, ...tailRows].flatMap((page) => readBlocks(logId, page))
  return {
    ...row,
    head: last.head,
    meteredBytes: row.meteredBytes + last.meteredBytes,
    tail: encodePage(blocks),
  }
}
