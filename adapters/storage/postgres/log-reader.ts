import { lossyTextOf, utf8 } from '../../../src/model/bytes.ts'
import { BATCH_RECORDS_MAX } from '../../../src/model/limits.ts'
import type { Head, HeadIdentity, ReadRange, StoredBlock } from '../../../src/storage/contract.ts'
import { bytesOf, bytesOfBase64, numberOf, numberOrNull, type PostgresRow } from './client.ts'
import { type Database, prepared } from './database.ts'
import { HEAD_COLUMNS, headOf } from './heads.ts'
import type { Tables } from './schema.ts'

/**
 * The most rows that a statement visits: few at first, because those beyond the limits of the read are
 * visited for nothing, and large rows reach the limits soon.
 */
const ROWS_MAX = { first: 64, next: 1_000 }

/** Reads heads and blocks. */
export class RowReader {
  readonly #database: Database
  readonly #statements: ReturnType<typeof statementsOf>

  constructor(database: Database, tables: Tables) {
    this.#database = database
    this.#statements = statementsOf(tables)
  }

  async head(logId: string, known?: HeadIdentity): Promise<Head | undefined> {
    if (known === undefined) {
      const [row] = await this.#database.query(this.#statements.head, [utf8(logId)])
      return row && headOf(row)
    }
    const [row] = await this.#database.query(this.#statements.headAfter, [utf8(logId), known.seqNum])
    return row && { ...headOf(row), isReplaced: isReplaced(row, known) }
  }

  async measure(logIds: readonly string[]): Promise<number[]> {
    if (logIds.length === 0) return []
    const rows = await this.#database.query(this.#statements.measure, [logIds.map(utf8)])
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
    let rowsMax = ROWS_MAX.first
    while (start < endSeqNum) {
      const rows = Math.max(1, Math.min(records, rowsMax))
      const page = await this.#readPage(logId, start, { endSeqNum, bytes, records, rows })
      for (const block of page) {
        blocks.push(block)
        bytes -= block.meteredBytes
        records -= block.endSeqNum - block.firstSeqNum
      }
      if (page.length < rows || bytes <= 0 || records <= 0) break
      start = page.at(-1)!.endSeqNum
      rowsMax = ROWS_MAX.next
    }
    return blocks
  }

  /** The blocks up to the one that reaches a limit. */
  async #readPage(
    logId: string,
    start: number,
    limits: {
      readonly endSeqNum: number
      readonly bytes: number
      readonly records: number
      readonly rows: number
    },
  ): Promise<StoredBlock[]> {
    const { endSeqNum, bytes, records, rows } = limits
    const found = await this.#database.query(this.#statements.page, [
      utf8(logId),
      start,
      // No block is longer, so the index ends the search.
      endSeqNum + BATCH_RECORDS_MAX,
      endSeqNum,
      rows,
      Math.max(1, bytes),
      Math.max(1, records),
    ])
    return found.map(blockOf)
  }

  async #seqNumAt(logId: string, timestamp: number): Promise<number> {
    const [row] = await this.#database.query(this.#statements.seqNumAt, [utf8(logId), timestamp])
    return row === undefined ? 0 : numberOf(row.low)
  }
}

function statementsOf({ logs, blocks }: Tables) {
  return {
    head: prepared(`SELECT ${HEAD_COLUMNS} FROM ${logs} WHERE id = $1 AND NOT is_deleted`),
    // With the block that contains the record before the known tail, if there is one.
    headAfter: prepared(`SELECT l.epoch, l.seq_num, l.append_id, l.state, l.extensions, l.write_state,
        b.first_seq_num AS known_first, b.end_seq_num AS known_end, b.append_id AS known_id
      FROM ${logs} l LEFT JOIN LATERAL (
        SELECT first_seq_num, end_seq_num, append_id FROM ${blocks}
        WHERE log = $1 AND end_seq_num >= $2 ORDER BY end_seq_num LIMIT 1
      ) b ON true
      WHERE l.id = $1 AND NOT l.is_deleted`),
    measure: prepared(`SELECT id, metered_bytes FROM ${logs} WHERE id = ANY($1) AND NOT is_deleted`),
    // Sums of integers, because those of bigints are numeric. Base64, because drivers decode it in half the
    // time that hexadecimal digits take.
    page: prepared(
      `SELECT first_seq_num, end_seq_num, first_timestamp, last_timestamp, metered_bytes, expires_at,
         encode(data, 'base64') AS data
       FROM (
         SELECT b.*, sum(metered_bytes::int) OVER w - metered_bytes AS bytes_before,
           sum((end_seq_num - first_seq_num)::int) OVER w - (end_seq_num - first_seq_num) AS records_before
         FROM (
           SELECT * FROM ${blocks} WHERE log = $1 AND end_seq_num > $2 AND end_seq_num < $3
           AND first_seq_num < $4 AND EXISTS (SELECT 1 FROM ${logs} WHERE id = $1 AND NOT is_deleted)
           ORDER BY end_seq_num LIMIT $5
         ) b WINDOW w AS (ORDER BY end_seq_num)
       ) c WHERE bytes_before < $6 AND records_before < $7 ORDER BY end_seq_num`,
    ),
    // A sequence number in the first block that ends at or after the timestamp. By bisection, because
    // timestamps ascend: an index would make every append slower.
    seqNumAt: prepared(
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
    ),
  }
}

/**
 * Whether the block around a known tail is not the one that was there. A freed one shows nothing. A tail
 * within a block is that of an append that was written in one statement with later ones of the same engine,
 * whose ids begin alike.
 */
function isReplaced(
  { known_first, known_end, known_id }: PostgresRow,
  { seqNum, appendId }: HeadIdentity,
): boolean {
  if (known_end === null || numberOf(known_first) >= seqNum) return false
  if (numberOf(known_end) === seqNum) return known_id !== appendId
  return engineOf(String(known_id)) !== engineOf(appendId)
}

function engineOf(appendId: string): string {
  return appendId.slice(0, appendId.lastIndexOf(':') + 1)
}

function blockOf(row: PostgresRow): StoredBlock {
  return {
    firstSeqNum: numberOf(row.first_seq_num),
    endSeqNum: numberOf(row.end_seq_num),
    firstTimestamp: numberOf(row.first_timestamp),
    lastTimestamp: numberOf(row.last_timestamp),
    meteredBytes: numberOf(row.metered_bytes),
    expiresAt: numberOrNull(row.expires_at),
    data: bytesOfBase64(row.data),
  }
}
