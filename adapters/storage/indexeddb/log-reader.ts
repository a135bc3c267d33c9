import type { Head, ReadRange, StoredBlock } from '../../../src/storage/contract.ts'
import { BlockCollector } from './block-collector.ts'
import type { Connection } from './connection.ts'
import { TAIL_ROW_RECORDS_MAX } from './log-state.ts'
import { readPages } from './page-reader.ts'
import { readBlocks } from './page-row.ts'
import { lastTailRow, readTailRows } from './tail-rows.ts'

export function readHead(connection: Connection, logId: string): Promise<Head | undefined> {
  return connection.read(['logs', 'appends'], async (transaction) => {
    const row = await transaction.objectStore('logs').get(logId)
    return row && ((await lastTailRow(transaction, logId, row)) ?? row).head
  })
}

/** The metered bytes of each log; 0 for one that does not exist. */
export function measureLogs(connection: Connection, logIds: readonly string[]): Promise<number[]> {
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
  connection: Connection,
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
