import { type AppendRow, behindRow, markKey, type RowMark } from './append-row.ts'
import type { LogRow } from './log-row.ts'
import type { LogWrite } from './log-write.ts'
import type { StoredPage } from './stored-page.ts'

/** A row of another revision that has all that was behind the one before. Nothing is waited for: what fails ends the transaction. */
export function putLog(transaction: IDBTransaction, logId: string, before: LogRow, write: LogWrite): void {
  deleteBehind(transaction, logId, before)
  putRow(transaction, logId, write.row)
  for (const page of write.pages) putPage(transaction, logId, page)
  putChores(transaction, write)
}

/** A row of another revision, and what is behind it. */
export function putRow(
  transaction: IDBTransaction,
  logId: string,
  row: LogRow,
  appends: readonly AppendRow[] = [],
): void {
  transaction.objectStore('logs').put(row, logId)
  const store = transaction.objectStore('appends')
  const { revision } = row
  const mark: RowMark = { revision }
  store.put(mark, markKey(logId, revision))
  let { head } = row
  for (const append of appends) {
    store.put(append, [logId, head.tail.seqNum, revision])
    head = append.head
  }
}

export function deleteBehind(transaction: IDBTransaction, logId: string, row: LogRow): void {
  const store = transaction.objectStore('appends')
  store.delete(markKey(logId, row.revision))
  store.delete(behindRow(logId, row))
}

export function putChores(
  transaction: IDBTransaction,
  { choresAdded, choresRemoved }: Pick<LogWrite, 'choresAdded' | 'choresRemoved'>,
): void {
  for (const chore of choresRemoved) transaction.objectStore('chores').delete(chore)
  for (const chore of choresAdded) transaction.objectStore('chores').put(1, chore)
}

export function putPage(
  transaction: IDBTransaction,
  logId: string,
  { endSeqNum, row, parts }: StoredPage,
): void {
  transaction.objectStore('pages').put(row, [logId, endSeqNum])
  for (const [index, part] of parts.entries()) {
    transaction.objectStore('parts').put(part, [logId, endSeqNum, index])
  }
}
