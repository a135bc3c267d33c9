import { BlockCollector } from '../../../src/storage/block-collector.ts'
import type { Head, ReadRange, StoredBlock } from '../../../src/storage/contract.ts'
import type { DatabaseConnection } from './connection.ts'
import { assembleBlocks, endSeqNumOf, pagesEnding, ROW_BYTES_MAX, readBlocks, readSummaries } from './page.ts'
import type { LogRow, ReadTransaction } from './schema.ts'
import { lastTailRow, readTailRows, TAIL_ROW_RECORDS_MAX } from './tail-rows.ts'

export function loadHead(connection: DatabaseConnection, logId: string): Promise<Head | undefined> {
  return connection.read(['logs', 'appends'], async (transaction) => {
    const row = await transaction.objectStore('logs').get(logId)
    return row && ((await lastTailRow(transaction, logId, row)) ?? row).head
  })
}

/** The metered bytes of each log; 0 for one that does not exist. */
export function measureLogs(connection: DatabaseConnection, logIds: readonly string[]): Promise<number[]> {
  return connection.read(['logs', 'appends'], (transaction) =>
    Promise.all(
      logIds.map(async (logId) => {
        const row = await transaction.objectStore('logs').get(logId)
        if (row === undefined) return 0
        return row.meteredBytes + ((await lastTailRow(transaction, logId, row))?.meteredBytes ?? 0)
      }),
    ),
  )
}

export function readLogRange(
  connection: DatabaseConnection,
  logId: string,
  range: ReadRange,
): Promise<StoredBlock[]> {
  return connection.read(['logs', 'appends', 'pages', 'parts'], async (transaction) => {
    const collector = new BlockCollector<StoredBlock>(range)
    if (collector.isDone) return []
    const logRow = transaction.objectStore('logs').get(logId)
    const [row, blocks] = await Promise.all([logRow, readPages(transaction, logId, range, logRow)])
    // The pages of a deleted log remain until they are reclaimed.
    if (row === undefined) return []
    for (const block of blocks) collector.add(block)
    if (!collector.isDone) for (const block of readBlocks(logId, row.tail)) collector.add(block)
    if (!collector.isDone) {
      // The first wanted record may be in the middle of a tail row.
      const first = 'seqNum' in range.from ? range.from.seqNum - TAIL_ROW_RECORDS_MAX + 1 : 0
      for (const tailRow of await readTailRows(transaction, logId, row, first)) {
        for (const block of readBlocks(logId, tailRow)) collector.add(block)
      }
    }
    return collector.blocks
  })
}

/** The most pages per request: a few megabytes. */
const PAGES_MAX = 100

/**
 * Reads the blocks in pages of a log that a read may want. Requests no page twice and few that are not
 * needed, and sends the first request before the log row has arrived.
 */
async function readPages(
  transaction: ReadTransaction,
  logId: string,
  range: ReadRange,
  logRow: Promise<LogRow | undefined>,
): Promise<StoredBlock[]> {
  const store = transaction.objectStore('pages')
  const { from, endSeqNum } = range
  const loading: Promise<StoredBlock[]>[] = []
  const collector = new BlockCollector(range)
  /** Pages that end at or below it are done. */
  let position = 'seqNum' in from ? from.seqNum : await seqNumAt(transaction, logId, from.timestamp)
  let bytesPerPage = ROW_BYTES_MAX
  while (position !== undefined && !collector.isDone) {
    const { bytesLeft, recordsLeft } = collector
    const pagesMax = Math.min(PAGES_MAX, Math.ceil(bytesLeft / bytesPerPage) + 1)
    // The read wants every page that ends by here.
    const wantedEnd = Math.min(endSeqNum, position + recordsLeft)
    let pages =
      wantedEnd > position ? await store.getAll(pagesEnding(logId, position, wantedEnd), pagesMax) : []
    if (pages.length === 0) {
      const row = await logRow
      if (row === undefined || position >= endOfPages(row)) break
      // The read wants a part of this page.
      pages = await store.getAll(pagesEnding(logId, position), 1)
    }
    for (const page of pages) {
      if (collector.isDone) break
      const pieces = range.unsplit ? undefined : page.pieces
      const summaries = readSummaries(page, pieces)
      for (const block of summaries) collector.add(block)
      const key = [logId, endSeqNumOf(page)] as const
      // One by one: in Chromium, `getAll` takes half as long again.
      const parts = Array.from({ length: page.parts }, (_, part) =>
        pieces && !collector.blocks.includes(summaries[part]!)
          ? null
          : transaction.objectStore('parts').get([...key, part]),
      )
      const blocks = Promise.all(parts).then((parts) => assembleBlocks(page, pieces, parts))
      // It may reject before `Promise.all` below handles it.
      blocks.catch(() => {})
      loading.push(blocks)
    }
    const last = pages.at(-1)
    position = last && endSeqNumOf(last)
    bytesPerPage = Math.max(1, (bytesLeft - collector.bytesLeft) / pages.length)
  }
  return (await Promise.all(loading)).flat()
}

/** A sequence number in the first page that reaches the timestamp. */
async function seqNumAt(
  transaction: ReadTransaction,
  logId: string,
  timestamp: number,
): Promise<number | undefined> {
  const range = IDBKeyRange.bound([logId, timestamp], [logId, []])
  const key = await transaction.objectStore('pages').index('by-timestamp').getKey(range)
  return key && key[1] - 1
}

/** The sequence number at which the tail of the log row begins. */
function endOfPages({ head, tail }: LogRow): number {
  return tail.numbers[0] ?? head.tail.seqNum
}
