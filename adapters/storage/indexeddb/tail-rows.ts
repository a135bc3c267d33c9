import type { AppendRequest, Head } from '../../../src/storage/contract.ts'
import { choreTimesAfter } from './chores.ts'
import { encodePage, readBlocks, sizeInPage } from './page.ts'
import type { ChoreTimes, LogRow, ReadTransaction, TailKey, TailRow, WriteTransaction } from './schema.ts'

type Transaction = ReadTransaction | WriteTransaction

/** A log as stored, except for its pages. */
export interface StoredLog {
  readonly row: LogRow
  /** The rows in order. */
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
  let cursor = await transaction.objectStore('appends').openCursor(tailRange(logId, row), 'prev')
  // Skips rows of stale revisions.
  while (cursor !== null && cursor.value.revision !== row.revision) cursor = await cursor.continue()
  return cursor?.value as TailRow | undefined
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
export async function hasMarker(
  transaction: WriteTransaction,
  logId: string,
  revision: number,
): Promise<boolean> {
  return (await transaction.objectStore('appends').getKey(markerKey(logId, revision))) !== undefined
}

export async function readTailLog(
  transaction: WriteTransaction,
  logId: string,
): Promise<StoredLog | undefined> {
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

/** A group of appends above this size is written to a page. */
const TAIL_ROW_BYTES_MAX = 2 * 1024

/** Each tail row repeats the head, whose producers would take more space than the appends. */
const TAIL_ROW_PRODUCERS_MAX = 16

/** A read from the middle of a tail row looks back this far for its beginning. */
export const TAIL_ROW_RECORDS_MAX = 16

/**
 * The limits beyond which all tail rows and the tail of the log row become a page. High limits make that
 * rare, and reads of all tail rows slow.
 */
const TAIL_ROWS_MAX = 100
const TAIL_BYTES_MAX = 30 * 1024

/** The state of a log without its blocks. */
export interface LogState extends ChoreTimes, Pick<LogRow, 'revision' | 'freedBelow'> {
  readonly head: Head
  /** Totals over all tail rows, as in {@link TailRow}. */
  readonly rows: number
  readonly bytes: number
  readonly meteredBytes: number
}

/** A tail row to add. */
export interface TailInsert {
  readonly key: TailKey
  readonly row: TailRow
}

export function logStateOf(row: LogRow, lastTailRow?: TailRow): LogState {
  const { revision, freedBelow, expiryChoreAt, trimChoreAt } = row
  const last = lastTailRow ?? { head: row.head, rows: 0, bytes: 0, meteredBytes: 0 }
  const { head, rows, bytes, meteredBytes } = last
  return { revision, freedBelow, expiryChoreAt, trimChoreAt, head, rows, bytes, meteredBytes }
}

/**
 * The tail row for consecutive appends, the first of which builds on `before`, and the state after it.
 * Undefined if the appends are too large for one, or too many tail rows exist.
 */
export function planTailInsert(
  logId: string,
  before: LogState,
  appends: readonly AppendRequest[],
): { readonly insert: TailInsert; readonly after: LogState } | undefined {
  const { revision, freedBelow } = before
  const blocks = appends.flatMap(({ blocks }) => blocks)
  const { head } = appends.at(-1)!
  const size = blocks.reduce((sum, block) => sum + sizeInPage(block), 0)
  const firstSeqNum = before.head.tail.seqNum
  const rows = before.rows + 1
  const bytes = before.bytes + size
  const isSmall =
    size <= TAIL_ROW_BYTES_MAX &&
    (head.writeState?.producers?.length ?? 0) <= TAIL_ROW_PRODUCERS_MAX &&
    head.tail.seqNum - firstSeqNum <= TAIL_ROW_RECORDS_MAX
  if (!isSmall || rows > TAIL_ROWS_MAX || bytes > TAIL_BYTES_MAX) return undefined
  const meteredBytes = blocks.reduce((sum, block) => sum + block.meteredBytes, before.meteredBytes)
  return {
    insert: {
      key: [logId, firstSeqNum, revision],
      row: { revision, head, rows, bytes, meteredBytes, ...encodePage(blocks) },
    },
    after: {
      ...before,
      ...{ head, rows, bytes, meteredBytes },
      ...choreTimesAfter(before, blocks, { head, freedBelow }),
    },
  }
}
