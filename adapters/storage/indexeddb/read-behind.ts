import type { Head, ReadRange } from '../../../src/storage/contract.ts'
import { type AppendRow, appendsTo, behindRow, headAfter, isAppend } from './append-row.ts'
import type { LogRow } from './log-row.ts'
import type { ReadTransaction } from './schema.ts'
import { APPEND_RECORDS_MAX } from './small-append.ts'

/** The head of a log, from its row and the last that is behind it. */
export async function readHead(transaction: ReadTransaction, logId: string): Promise<Head | undefined> {
  const behind = transaction.objectStore('appends')
  let [row, cursor] = await Promise.all([
    transaction.objectStore('logs').get(logId),
    behind.openCursor(behindRow(logId), 'prev'),
  ])
  if (row === undefined) return undefined
  // What is behind no row any more may be further back, or in front.
  while (cursor !== null && cursor.value.revision !== row.revision) cursor = await cursor.continue()
  const last = cursor?.value
  return last !== undefined && isAppend(last) ? headAfter(row.head, last) : row.head
}

/** What is behind the row of a log and may have what a read wants. */
export async function readAppends(
  transaction: ReadTransaction,
  logId: string,
  row: LogRow,
  from: ReadRange['from'],
): Promise<AppendRow[]> {
  const first = 'seqNum' in from ? Math.max(0, from.seqNum - APPEND_RECORDS_MAX + 1) : 0
  const behind = await transaction
    .objectStore('appends')
    .getAll(IDBKeyRange.bound([logId, first], [logId, []]))
  return appendsTo(row, behind)
}
