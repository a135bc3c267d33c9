import type { ReadRange, StoredBlock } from '../../../src/storage/contract.ts'
import { BlockCollector } from './block-collector.ts'
import { endOfPages, type LogRow } from './log-row.ts'
import { endSeqNumOf } from './page.ts'
import { endingWithin } from './page-keys.ts'
import { blocksOfRow, ROW_BYTES_MAX, summariesIn } from './page-row.ts'
import type { ReadTransaction } from './schema.ts'

/** How many pages are asked for at once: a few megabytes at the most. */
const PAGES_MAX = 100

/**
 * The blocks of a log's pages among which are all that the read wants. Asks for no page twice and for few in vain; the first request goes out
 * before the log's row has come.
 */
export async function readPages(
  transaction: ReadTransaction,
  logId: string,
  range: ReadRange,
  reading: Promise<LogRow | undefined>,
): Promise<StoredBlock[]> {
  const store = transaction.objectStore('pages')
  const { from, endSeqNum } = range
  const loading: Promise<StoredBlock[]>[] = []
  const collector = new BlockCollector(range)
  /** Pages that end at or before it are behind. */
  let position = 'seqNum' in from ? from.seqNum : await firstOf(transaction, logId, from.timestamp)
  let bytesOfPage = ROW_BYTES_MAX
  while (position !== undefined && !collector.isDone) {
    const { bytesLeft, recordsLeft } = collector
    const pagesMax = Math.min(PAGES_MAX, Math.ceil(bytesLeft / bytesOfPage) + 1)
    // All that is in pages up to here is wanted.
    const wantedEnd = Math.min(endSeqNum, position + recordsLeft)
    let pages =
      wantedEnd > position ? await store.getAll(endingWithin(logId, position, wantedEnd), pagesMax) : []
    if (pages.length === 0) {
      const row = await reading
      if (row === undefined || position >= endOfPages(row)) break
      // Of this one a part is.
      pages = await store.getAll(endingWithin(logId, position), 1)
    }
    for (const page of pages) {
      if (collector.isDone) break
      const pieces = range.unsplit ? undefined : page.pieces
      const summaries = summariesIn(page, pieces)
      for (const block of summaries) collector.add(block)
      const key = [logId, endSeqNumOf(page)] as const
      // One by one: Chromium needs half as long again for `getAll`.
      const parts = Array.from({ length: page.parts }, (_, part) =>
        pieces && !collector.blocks.includes(summaries[part]!)
          ? null
          : transaction.objectStore('parts').get([...key, part]),
      )
      const blocks = Promise.all(parts).then((parts) => blocksOfRow(page, pieces, parts))
      // It may fail before the others are there and all of them are awaited.
      blocks.catch(() => {})
      loading.push(blocks)
    }
    const last = pages.at(-1)
    position = last && endSeqNumOf(last)
    bytesOfPage = Math.max(1, (bytesLeft - collector.bytesLeft) / pages.length)
  }
  return (await Promise.all(loading)).flat()
}

/** Where the first page begins, at the latest, that reaches the timestamp. */
async function firstOf(
  transaction: ReadTransaction,
  logId: string,
  timestamp: number,
): Promise<number | undefined> {
  const range = IDBKeyRange.bound([logId, timestamp], [logId, []])
  const key = await transaction.objectStore('pages').index('by-timestamp').getKey(range)
  return key && key[1] - 1
}
