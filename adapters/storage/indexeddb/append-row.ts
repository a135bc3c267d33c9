import type { Head } from '../../../src/storage/contract.ts'
import type { LogRow } from './log-row.ts'
import type { Page } from './page.ts'
import type { AppendKey, ReadTransaction, WriteTransaction } from './schema.ts'

/**
 * Small appends of one group, behind the row of their log instead of in it, so that they are one `add`. Persisted: keep stable.
 *
 * Its key is where it begins, so that of two which rest on the same head one alone can be added. Whoever knows of a row that has been replaced since does not
 * find its mark; what he added is behind no row then, and nobody reads it.
 */
export interface AppendRow extends Page {
  /** Of the log's row. */
  readonly revision: number
  /** The head that they leave. */
  readonly head: Head
  /** Of this and all in front of it behind the same row: how many rows, how large in a page, and the metered bytes of their blocks. */
  readonly rows: number
  readonly bytes: number
  readonly meteredBytes: number
}

/** Is there as long as the log's row has this revision: with it alone, what is added behind the row counts. */
export interface RowMark {
  readonly revision: number
}

export function markKey(logId: string, revision: number): AppendKey {
  return [logId, -1, revision]
}

/** Of what is behind the row of a log, or with a sequence number what of it begins there and later. */
export function behindRow(logId: string, { head }: LogRow, fromSeqNum = 0): IDBKeyRange {
  // Further in front are those that were behind earlier rows: they are deleted, but Chromium passes over each of them.
  return IDBKeyRange.bound([logId, Math.max(head.tail.seqNum, fromSeqNum)], [logId, []])
}

/** The last that is behind a row. */
export async function lastBehind(
  transaction: ReadTransaction | WriteTransaction,
  logId: string,
  row: LogRow,
): Promise<AppendRow | undefined> {
  let cursor = await transaction.objectStore('appends').openCursor(behindRow(logId, row), 'prev')
  // What is behind no row any more.
  while (cursor !== null && cursor.value.revision !== row.revision) cursor = await cursor.continue()
  return cursor?.value as AppendRow | undefined
}

/** All that is behind a row, in order, or with a sequence number what of it begins there and later. */
export async function allBehind(
  transaction: ReadTransaction | WriteTransaction,
  logId: string,
  row: LogRow,
  fromSeqNum?: number,
): Promise<AppendRow[]> {
  const found = await transaction.objectStore('appends').getAll(behindRow(logId, row, fromSeqNum))
  return (found as AppendRow[]).filter(({ revision }) => revision === row.revision)
}
