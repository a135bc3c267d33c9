import type { Head, ReadRange, StoredBlock } from '../../../src/storage/contract.ts'
import { allBehind, lastBehind } from './append-row.ts'
import { BlockCollector } from './block-collector.ts'
import type { Connection } from './connection.ts'
import { readPages } from './page-reader.ts'
import { blocksIn } from './page-row.ts'
import { APPEND_RECORDS_MAX } from './small-append.ts'

/** What is read of logs. */
export class LogReader {
  readonly #connection: Connection

  constructor(connection: Connection) {
    this.#connection = connection
  }

  async head(logId: string): Promise<Head | undefined> {
    return this.#connection.read(['logs', 'appends'], async (transaction) => {
      const row = await transaction.objectStore('logs').get(logId)
      return row && ((await lastBehind(transaction, logId, row)) ?? row).head
    })
  }

  read(logId: string, range: ReadRange): Promise<StoredBlock[]> {
    return this.#connection.read(['logs', 'appends', 'pages', 'parts'], async (transaction) => {
      const collector = new BlockCollector<StoredBlock>(range)
      if (collector.isDone) return []
      const reading = transaction.objectStore('logs').get(logId)
      const [row, blocks] = await Promise.all([reading, readPages(transaction, logId, range, reading)])
      // What a deleted log left is there until it is freed.
      if (row === undefined) return []
      for (const block of blocks) collector.add(block)
      if (!collector.isDone) for (const block of blocksIn(logId, row.tail)) collector.add(block)
      if (!collector.isDone) {
        // A group may begin in front of what is wanted of it.
        const first = 'seqNum' in range.from ? range.from.seqNum - APPEND_RECORDS_MAX + 1 : 0
        for (const append of await allBehind(transaction, logId, row, first)) {
          for (const block of blocksIn(logId, append)) collector.add(block)
        }
      }
      return collector.blocks
    })
  }
}
