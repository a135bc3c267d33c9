import { type AppendRow, allBehind, markKey } from './append-row.ts'
import type { LogRow } from './log-row.ts'
import { pageOf } from './page.ts'
import { blocksIn } from './page-row.ts'
import type { WriteTransaction } from './schema.ts'
import { stateOf } from './small-append.ts'

/** A log as it is stored, but for its pages. */
export interface StoredLog {
  readonly row: LogRow
  /** Behind the row, in order. */
  readonly appends: readonly AppendRow[]
}

export async function readLog(transaction: WriteTransaction, logId: string): Promise<StoredLog | undefined> {
  const row = await transaction.objectStore('logs').get(logId)
  return row && { row, appends: await allBehind(transaction, logId, row) }
}

/** Whether something can be added behind the row: not behind those of older versions of the library. */
export async function isMarked(
  transaction: WriteTransaction,
  logId: string,
  revision: number,
): Promise<boolean> {
  return (await transaction.objectStore('appends').getKey(markKey(logId, revision))) !== undefined
}

/** The row with what is behind it. Throws `StorageFailure` of kind `corrupt` when something is damaged. */
export function foldedRow(logId: string, { row, appends }: StoredLog): LogRow {
  if (appends.length === 0) return row
  const blocks = [row.tail, ...appends].flatMap((page) => blocksIn(logId, page))
  const { head, meteredBytes } = stateOf(row, appends.at(-1))
  return { ...row, head, meteredBytes: row.meteredBytes + meteredBytes, tail: pageOf(blocks) }
}
