import type { LogWrite } from './log-row.ts'
import type { StoredPage } from './page-row.ts'
import type { StoreName } from './schema.ts'

/** What writing it touches. */
export function storesOf(write: LogWrite | undefined): StoreName[] {
  if (write === undefined) return ['logs']
  const { pages, choresAdded, choresRemoved } = write
  const stores: StoreName[] = ['logs']
  if (pages.length > 0) stores.push('pages')
  if (pages.some(({ parts }) => parts.length > 0)) stores.push('parts')
  if (choresAdded.length > 0 || choresRemoved.length > 0) stores.push('chores')
  return stores
}

/** Asks for everything and waits for nothing: what fails ends the transaction. */
export function putLog(transaction: IDBTransaction, logId: string, write: LogWrite): void {
  const { row, pages, choresAdded, choresRemoved } = write
  transaction.objectStore('logs').put(row, logId)
  for (const page of pages) putPage(transaction, logId, page)
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
