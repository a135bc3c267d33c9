import type { BlockSummary } from '../../../src/storage/block-collector.ts'
import type { AppendRequest, StoredBlock } from '../../../src/storage/contract.ts'
import { choreTimesAfter, exactChoreTimes, putChores, type RescheduledLog, reschedule } from './chores.ts'
import { encodePage, type PackedBlock, packPages, parseBlocks, readBlocks, sizeInPage } from './page.ts'
import type { LogRow, TailMarker, TailRow } from './schema.ts'
import { markerKey, tailRange } from './tail-rows.ts'

/** A larger tail becomes a page, because reading the head loads the tail with it. */
const TAIL_BYTES_MAX = 2 * 1024

/** A new version of a log row without tail rows, and what is written with it. */
export interface LogWrite extends RescheduledLog {
  readonly pages: readonly PackedBlock[]
}

/**
 * The log row after one or more consecutive appends. Throws `StorageFailure` (`corrupt`) if its tail is
 * damaged.
 */
export function writeWithAppends(logId: string, row: LogRow, appends: readonly AppendRequest[]): LogWrite {
  const added = appends.flatMap(({ blocks }) => blocks)
  const { tail, pages } = splitOffPages(logId, [...readBlocks(logId, row.tail), ...added])
  const next: LogRow = {
    ...row,
    revision: row.revision + 1,
    head: appends.at(-1)!.head,
    meteredBytes: row.meteredBytes + blocksMeteredBytes(added),
    tail: encodePage(tail),
  }
  return { ...reschedule(logId, row, next, choreTimesAfter(row, tail, next)), pages }
}

/** The log row after blocks were reclaimed. Throws `RangeError` if its tail is damaged. */
export function writeWithExactChores(logId: string, before: LogRow, next: LogRow): LogWrite {
  const { tail, pages } = splitOffPages(logId, parseBlocks(next.tail))
  const row = { ...next, tail: encodePage(tail) }
  return { ...reschedule(logId, before, row, exactChoreTimes(tail, next)), pages }
}

export function blocksMeteredBytes(blocks: readonly BlockSummary[]): number {
  return blocks.reduce((sum, { meteredBytes }) => sum + meteredBytes, 0)
}

/**
 * Replaces a log row and its tail rows. Requests are not awaited, here and below: one that fails aborts the
 * transaction.
 */
export function replaceLog(
  transaction: IDBTransaction,
  logId: string,
  before: LogRow,
  write: LogWrite,
): void {
  deleteTailRows(transaction, logId, before)
  putLogRow(transaction, logId, write.row)
  for (const page of write.pages) putPage(transaction, logId, page)
  putChores(transaction, write)
}

/** Puts a log row of a new revision, with its tail rows. */
export function putLogRow(
  transaction: IDBTransaction,
  logId: string,
  row: LogRow,
  tailRows: readonly TailRow[] = [],
): void {
  transaction.objectStore('logs').put(row, logId)
  const store = transaction.objectStore('appends')
  const { revision } = row
  const marker: TailMarker = { revision }
  store.put(marker, markerKey(logId, revision))
  let { head } = row
  for (const tailRow of tailRows) {
    store.put(tailRow, [logId, head.tail.seqNum, revision])
    head = tailRow.head
  }
}

export function deleteTailRows(transaction: IDBTransaction, logId: string, row: LogRow): void {
  const store = transaction.objectStore('appends')
  store.delete(markerKey(logId, row.revision))
  store.delete(tailRange(logId, row))
}

export function putPage(
  transaction: IDBTransaction,
  logId: string,
  { endSeqNum, row, parts }: PackedBlock,
): void {
  transaction.objectStore('pages').put(row, [logId, endSeqNum])
  for (const [index, part] of parts.entries()) {
    transaction.objectStore('parts').put(part, [logId, endSeqNum, index])
  }
}

/**
 * Keeps the blocks as the tail of the log row if they are small enough, and moves them to pages otherwise.
 */
function splitOffPages(logId: string, blocks: readonly StoredBlock[]) {
  const fits = blocks.reduce((bytes, block) => bytes + sizeInPage(block), 0) <= TAIL_BYTES_MAX
  return fits ? { tail: blocks, pages: [] } : { tail: [], pages: packPages(logId, blocks) }
}
