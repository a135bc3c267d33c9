import { extendedExpiry, isExpired, reclaimablePoint } from '../../../src/core/retention.ts'
import { concatBytes } from '../../../src/model/bytes.ts'
import { BlockCollector, type BlockSummary } from '../../../src/storage/block-collector.ts'
import type { LogHeads, LogUpdate } from '../../../src/storage/commit-plan.ts'
import type {
  AppendRequest,
  Head,
  ReadRange,
  Reclaimed,
  ReclaimLimits,
  StoredBlock,
} from '../../../src/storage/contract.ts'
import { assertExpectedHead } from '../../../src/storage/heads.ts'
import type { ObjectDatabase, SqlBinding, SqlRow } from './database.ts'

/** A row of at most 2 MB holds a part and its numbers. */
const PART_BYTES = 1_048_576
const PAGE_BLOCKS = 100
const EXPIRED = 'SELECT 1 FROM headwater_blocks WHERE expires_at <= ?'

/** The heads and blocks of all logs. Methods that write are part of a transaction. */
export class ObjectLogs implements LogHeads {
  readonly #db: ObjectDatabase

  constructor(db: ObjectDatabase) {
    this.#db = db
  }

  headOf(logId: string): Head | undefined {
    const row = this.#db.first('SELECT head FROM headwater_logs WHERE id = ?', logId)
    return typeof row?.head === 'string' ? JSON.parse(row.head) : undefined
  }

  measure(logId: string): number {
    const row = this.#db.first(
      'SELECT metered_bytes FROM headwater_logs WHERE id = ? AND head IS NOT NULL',
      logId,
    )
    return (row?.metered_bytes ?? 0) as number
  }

  /** Whether blocks of a deleted log with this id are left. */
  hasRemains(logId: string): boolean {
    return this.#db.first('SELECT 1 FROM headwater_logs WHERE id = ?', logId) !== undefined
  }

  apply({ logId, head, isNew }: LogUpdate): void {
    if (head === undefined)
      this.#db.run('UPDATE headwater_logs SET head = NULL, due_at = 0 WHERE id = ?', logId)
    else if (isNew)
      this.#db.run('INSERT INTO headwater_logs VALUES (?, ?, 0, NULL)', logId, JSON.stringify(head))
    else this.#putHead(logId, head)
  }

  append({ logId, expected, block, head }: AppendRequest): void {
    assertExpectedHead(logId, this.headOf(logId), expected)
    const { endSeqNum, firstSeqNum, firstTimestamp, lastTimestamp, meteredBytes, expiresAt, data } = block
    this.#db.run(
      'INSERT INTO headwater_blocks VALUES (?, ?, 0, ?, ?, ?, ?, ?, ?)',
      logId,
      endSeqNum,
      firstSeqNum,
      firstTimestamp,
      lastTimestamp,
      meteredBytes,
      expiresAt,
      data.subarray(0, PART_BYTES),
    )
    for (let part = 1; part * PART_BYTES < data.length; part++) {
      this.#db.run(
        'INSERT INTO headwater_blocks (log, end_seq_num, part, data) VALUES (?, ?, ?, ?)',
        logId,
        endSeqNum,
        part,
        data.subarray(part * PART_BYTES, (part + 1) * PART_BYTES),
      )
    }
    this.#putHead(logId, head, meteredBytes)
    if (head.trims.length > 0) this.scheduleTrim(logId, head)
  }

  read(logId: string, range: ReadRange): StoredBlock[] {
    const { from } = range
    const head = this.headOf(logId)
    if (head === undefined) return []
    const start = 'seqNum' in from ? from.seqNum : this.#seqNumAt(logId, from.timestamp, head)
    const blocks: StoredBlock[] = []
    for (const row of this.#db.all(
      `SELECT * FROM headwater_blocks WHERE log = ? AND end_seq_num > ? AND end_seq_num <= ?
       ORDER BY end_seq_num, part`,
      logId,
      start,
      this.#lastOf(logId, start, range),
    )) {
      if (row.part === 0) {
        blocks.push(blockOf(row))
      } else {
        const block = blocks.pop()!
        blocks.push({ ...block, data: concatBytes([block.data, dataOf(row)]) })
      }
    }
    return blocks
  }

  /** Sets when the first block may be freed because of a trim. */
  scheduleTrim(logId: string, { trims }: Head): void {
    const first = this.#db.first(
      'SELECT end_seq_num FROM headwater_blocks WHERE log = ? ORDER BY end_seq_num LIMIT 1',
      logId,
    )
    const due = first && trims.find(({ point }) => point >= (first.end_seq_num as number))
    this.#db.run('UPDATE headwater_logs SET due_at = ? WHERE id = ?', due?.at ?? null, logId)
  }

  #putHead(logId: string, head: Head, addedBytes = 0): void {
    this.#db.run(
      'UPDATE headwater_logs SET head = ?, metered_bytes = metered_bytes + ? WHERE id = ?',
      JSON.stringify(head),
      addedBytes,
      logId,
    )
  }

  /**
   * The end of the last block of a read from `start`. Found first and by pages, because a query that is not
   * read to its end stays open, and an open query locks its table.
   */
  #lastOf(logId: string, start: number, range: ReadRange): number {
    const collector = new BlockCollector(range)
    for (let last = start; !collector.isDone; ) {
      const page = this.#db.all(
        `SELECT first_seq_num, end_seq_num, first_timestamp, last_timestamp, metered_bytes, expires_at
         FROM headwater_blocks
         WHERE log = ? AND end_seq_num > ? AND part = 0 ORDER BY end_seq_num LIMIT ?`,
        logId,
        last,
        PAGE_BLOCKS,
      )
      for (const row of page) collector.add(summaryOf(row))
      if (page.length < PAGE_BLOCKS) break
      last = page.at(-1)!.end_seq_num as number
    }
    return collector.blocks.at(-1)?.endSeqNum ?? start
  }

  /**
   * A sequence number in the first block that ends at or after the timestamp, by bisection: timestamps
   * ascend.
   */
  #seqNumAt(logId: string, timestamp: number, { tail }: Head): number {
    let low = 0
    let high = tail.seqNum
    while (low < high) {
      const middle = Math.floor((low + high) / 2)
      const block = this.#db.first(
        `SELECT end_seq_num, last_timestamp FROM headwater_blocks
         WHERE log = ? AND end_seq_num > ? AND part = 0 ORDER BY end_seq_num LIMIT 1`,
        logId,
        middle,
      )
      if (block === undefined || (block.last_timestamp as number) >= timestamp) high = middle
      else low = block.end_seq_num as number
    }
    return low
  }
}

function dataOf({ data }: SqlRow): Uint8Array {
  return new Uint8Array(data as ArrayBuffer)
}

function blockOf(row: SqlRow): StoredBlock {
  return { ...summaryOf(row), data: dataOf(row) }
}

function summaryOf(row: SqlRow): BlockSummary {
  return {
    firstSeqNum: row.first_seq_num as number,
    endSeqNum: row.end_seq_num as number,
    firstTimestamp: row.first_timestamp as number,
    lastTimestamp: row.last_timestamp as number,
    meteredBytes: row.metered_bytes as number,
    expiresAt: row.expires_at as number | null,
  }
}

/** Frees expired and trimmed blocks, and those of deleted logs. Part of a transaction. */
export function reclaimLogRows(
  db: ObjectDatabase,
  logs: ObjectLogs,
  { now, trimmedBefore, blocksMax }: ReclaimLimits,
): Reclaimed {
  const touched = new Set<string>()
  let left = blocksMax

  /** Frees at most `left` of the selected blocks. Returns whether the limit was reached. */
  function free(where: string, ...bindings: SqlBinding[]): boolean {
    const found = db.all(
      `SELECT log, end_seq_num, metered_bytes FROM headwater_blocks WHERE part = 0 AND ${where} LIMIT ?`,
      ...bindings,
      left,
    )
    for (const block of found) freeBlock(block)
    left -= found.length
    return left === 0
  }

  function freeBlock({ log, end_seq_num, metered_bytes }: SqlRow): void {
    db.run('DELETE FROM headwater_blocks WHERE log = ? AND end_seq_num = ?', log!, end_seq_num!)
    db.run('UPDATE headwater_logs SET metered_bytes = metered_bytes - ? WHERE id = ?', metered_bytes!, log!)
    touched.add(log as string)
  }

  /** Frees expired blocks, and stores the expiry of those that are extended. */
  function freeExpired(): void {
    const found = db.all(
      `SELECT log, end_seq_num, first_seq_num, metered_bytes, expires_at FROM headwater_blocks
       WHERE expires_at <= ? LIMIT ?`,
      now,
      left,
    )
    const heads = new Map(found.map(({ log }) => [log!, undefined as Head | undefined]))
    for (const log of heads.keys()) heads.set(log, logs.headOf(log as string))
    for (const block of found) {
      const { log, end_seq_num, first_seq_num, expires_at } = block
      const stored = { firstSeqNum: first_seq_num as number, expiresAt: expires_at as number }
      const expiresAt = extendedExpiry(stored, heads.get(log!)?.extensions)
      if (isExpired(expiresAt, now)) freeBlock(block)
      else {
        db.run(
          'UPDATE headwater_blocks SET expires_at = ? WHERE log = ? AND end_seq_num = ? AND part = 0',
          expiresAt,
          log!,
          end_seq_num!,
        )
      }
    }
    left -= found.length
  }

  function freeDue(logId: string, head: Head | undefined): boolean {
    if (head === undefined) {
      if (free('log = ?', logId)) return false
      db.run('DELETE FROM headwater_logs WHERE id = ?', logId)
      touched.delete(logId)
      return true
    }
    const point = reclaimablePoint(head.trims, trimmedBefore)
    free('log = ? AND end_seq_num <= ?', logId, point)
    logs.scheduleTrim(logId, head)
    return true
  }

  freeExpired()
  while (left > 0) {
    const due = dueLog()
    if (due === undefined || !freeDue(due, logs.headOf(due))) break
  }
  // Expired blocks may have been the first of a trimmed log.
  return {
    more: dueLog() !== undefined || db.first(`${EXPIRED} LIMIT 1`, now) !== undefined,
    logIds: [...touched].filter((logId) => logs.headOf(logId) !== undefined),
  }

  function dueLog(): string | undefined {
    const row = db.first(
      'SELECT id FROM headwater_logs WHERE due_at <= ? LIMIT 1',
      Math.max(trimmedBefore, 0),
    )
    return row?.id as string | undefined
  }
}
