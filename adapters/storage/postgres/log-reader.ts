import { lossyTextOf, utf8 } from '../../../src/model/bytes.ts'
import { BATCH_RECORDS_MAX } from '../../../src/model/limits.ts'
import type { Head, ReadRange, StoredBlock } from '../../../src/storage/contract.ts'
import type { Row } from './client.ts'
import type { Database } from './database.ts'
import { headOf } from './heads.ts'
import type { Tables } from './schema.ts'
import { bytesOf, numberOf, numberOrNull } from './values.ts'

/** The most rows that one statement visits. */
const ROWS_MAX = 1_000

/** Reads heads and blocks. */
export class LogReader {
  readonly #database: Database
  readonly #tables: Tables

  constructor(database: Database, tables: Tables) {
    this.#database = database
    this.#tables = tables
  }

  async head(logId: string): Promise<Head | undefined> {
    const [row] = await this.#database.query(
      `SELECT epoch, seq_num, append_id, state FROM ${this.#tables.logs} WHERE id = $1 AND NOT is_deleted`,
      [utf8(logId)],
    )
    return row && headOf(row)
  }

  async measure(logIds: readonly string[]): Promise<number[]> {
    if (logIds.length === 0) return []
    const rows = await this.#database.query(
      `SELECT id, metered_bytes FROM ${this.#tables.logs} WHERE id = ANY($1) AND NOT is_deleted`,
      [logIds.map(utf8)],
    )
    const measured = new Map(
      rows.map(({ id, metered_bytes }) => [lossyTextOf(bytesOf(id)), numberOf(metered_bytes)]),
    )
    return logIds.map((logId) => measured.get(logId) ?? 0)
  }

  async read(logId: string, range: ReadRange): Promise<StoredBlock[]> {
    const { from, endSeqNum } = range
    const blocks: StoredBlock[] = []
    let start = 'seqNum' in from ? from.seqNum : await this.#seqNumAt(logId, from.timestamp)
    let bytes = range.bytesMax
    let records = range.recordsMax ?? Number.MAX_SAFE_INTEGER
    while (start < endSeqNum) {
      const page = await this.#readPage(logId, start, { endSeqNum, bytes, records })
      for (const block of page) {
        blocks.push(block)
        bytes -= block.meteredBytes
        records -= block.endSeqNum - block.firstSeqNum
      }
      if (page.length < ROWS_MAX || bytes <= 0 || records <= 0) break
      start = page.at(-1)!.endSeqNum
    }
    return blocks
  }

  /** The blocks up to the one that reaches a limit, at most `ROWS_MAX`. */
  async #readPage(
    logId: string,
    start: number,
    limits: { readonly endSeqNum: number; readonly bytes: number; readonly records: number },
  ): Promise<StoredBlock[]> {
    const { logs, blocks } = this.#tables
    const { endSeqNum, bytes, records } = limits
    const rows = await this.#database.query(
      `SELECT first_seq_num, end_seq_num, first_timestamp, last_timestamp, metered_bytes, expires_at, data
       FROM (
         SELECT b.*, sum(metered_bytes) OVER w - metered_bytes AS bytes_before,
           sum(end_seq_num - first_seq_num) OVER w - (end_seq_num - first_seq_num) AS records_before
         FROM (
           SELECT * FROM ${blocks} WHERE log = $1 AND end_seq_num > $2 AND end_seq_num < $3
           AND first_seq_num < $4 AND EXISTS (SELECT 1 FROM ${logs} WHERE id = $1 AND NOT is_deleted)
           ORDER BY end_seq_num LIMIT $5
         ) b WINDOW w AS (ORDER BY end_seq_num)
       ) c WHERE bytes_before < $6 AND records_before < $7 ORDER BY end_seq_num`,
      [
        utf8(logId),
        start,
        // No block is longer, so the index ends the search.
        endSeqNum + BATCH_RECORDS_MAX,
        endSeqNum,
        Math.max(1, Math.min(records, ROWS_MAX)),
        Math.max(1, bytes),
        Math.max(1, records),
      ],
    )
    return rows.map(blockOf)
  }

  /**
   * A sequence number in the first block that ends at or after the timestamp. By bisection, because
   * timestamps ascend: an index would make every append slower.
   */
  async #seqNumAt(logId: string, timestamp: number): Promise<number> {
    const { logs, blocks } = this.#tables
    const [row] = await this.#database.query(
      `WITH RECURSIVE search (low, high) AS (
         SELECT 0::bigint, seq_num FROM ${logs} WHERE id = $1 AND NOT is_deleted
         UNION ALL
         SELECT CASE WHEN b.last_timestamp < $2 THEN b.end_seq_num ELSE s.low END,
           CASE WHEN b.last_timestamp < $2 THEN s.high ELSE (s.low + s.high) >> 1 END
         FROM search s LEFT JOIN LATERAL (
           SELECT end_seq_num, last_timestamp FROM ${blocks}
           WHERE log = $1 AND end_seq_num > (s.low + s.high) >> 1 ORDER BY end_seq_num LIMIT 1
         ) b ON true
         WHERE s.low < s.high
       )
       SELECT low FROM search WHERE low >= high`,
      [utf8(logId), timestamp],
    )
    return row === undefined ? 0 : numberOf(row.low)
  }
}

function blockOf(row: Row): StoredBlock {
  return {
    firstSeqNum: numberOf(row.first_seq_num),
    endSeqNum: numberOf(row.end_seq_num),
    firstTimestamp: numberOf(row.first_timestamp),
    lastTimestamp: numberOf(row.last_timestamp),
    meteredBytes: numberOf(row.metered_bytes),
    expiresAt: numberOrNull(row.expires_at),
    data: bytesOf(row.data),
  }
}
