import { behindRow, type Opening, openingKey } from './append-row.ts'
import type { LogRow } from './log-row.ts'
import type { LogWrite } from './log-write.ts'
import type { StoredPage } from './page-row.ts'

/** What fails ends the transaction; nothing is waited for. */
export function putLog(transaction: IDBTransaction, logId: string, write: LogWrite): void {
  const { row, pages, choresAdded, choresRemoved } = write
  putRow(transaction, logId, row)
  for (const page of pages) putPage(transaction, logId, page)
  for (const chore of choresRemoved) transaction.objectStore('chores').delete(chore)
  for (const chore of choresAdded) transaction.objectStore('chores').put(1, chore)
}

/** A row that has all that was behind the one before it. */
export function putRow(transaction: IDBTransaction, logId: string, row: LogRow): void {
  transaction.objectStore('logs').put(row, logId)
  const appends = transaction.objectStore('appends')
  appends.delete(behindRow(logId))
  const { revision } = row
  const opening: Opening = { revision }
  appends.put(opening, openingKey(logId, revision))
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
