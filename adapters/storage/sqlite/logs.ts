import { isReclaimable, reclaimTimes } from '../../../src/core/retention.ts'
import { concatBytes } from '../../../src/model/bytes.ts'
import { planAppends } from '../../../src/storage/append-plan.ts'
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
import { cutBlock } from '../../../src/storage/cut-block.ts'
import type { StorageConflict } from '../../../src/storage/errors.ts'
import type { SqliteRow, SqliteTables, SqliteValue } from './database.ts'

/** A row of at most 2 MB, the limit of Durable Objects, holds a part and its numbers. */
const PART_BYTES = 1_048_576
const PAGE_BLOCKS = 100
/** Most reclaims free only a few blocks of a log. */
const RECLAIM_PAGE_BLOCKS = 4
/** The times of an empty log, which has nothing to free. */
const NEVER = { trimmedAt: null, expiresAt: null }

/** The heads and blocks of all logs. Methods that write are part of a transaction. */
export class SqliteLogs implements LogHeads {
  readonly #tables: SqliteTables

  constructor(tables: SqliteTables) {
    this.#tables = tables
  }

  headOf(logId: string): Head | undefined {
    const row = this.#tables.first('SELECT head FROM headwater_logs WHERE id = ?', logId)
    return typeof row?.head === 'string' ? JSON.parse(row.head) : undefined
  }

  measure(logId: string): number {
    const row = this.#tables.first(
      'SELECT metered_bytes FROM headwater_logs WHERE id = ? AND head IS NOT NULL',
      logId,
    )
    return (row?.metered_bytes ?? 0) as number
  }

  apply({ logId, head, isNew }: LogUpdate): void {
    if (head === undefined) {
      this.#tables.run('UPDATE headwater_logs SET head = NULL, trimmed_at = 0 WHERE id = ?', logId)
    } else if (isNew) {
      this.#tables.run('INSERT INTO headwater_logs VALUES (?, ?, 0, NULL, NULL)', logId, JSON.stringify(head))
    } else this.#putHead(logId, head)
  }

  /** Makes the appends whose expectation holds, and returns the conflicts of the others. */
  append(requests: readonly AppendRequest[]): ReadonlyMap<AppendRequest, StorageConflict> {
    const { logs, conflicts } = planAppends(requests, this)
    for (const { logId, blocks, head } of logs) {
      for (const block of blocks) this.#insert(logId, block)
      this.#putHead(logId, head, meteredBytesOf(blocks))
    }
    return conflicts
  }

  read(logId: string, range: ReadRange): StoredBlock[] {
    const { from } = range
    const wanted = new BlockCollector(range)
    const head = wanted.isDone ? undefined : this.headOf(logId)
    if (head === undefined) return []
    const start = 'seqNum' in from ? from.seqNum : this.#seqNumAt(logId, from.timestamp, head)
    const [summary] = this.#summaries(logId, start, 1)
    if (summary === undefined) return []
    let last = summary.endSeqNum
    const first = cutBlock(this.#blocks(logId, start, last)[0]!, range)
    wanted.add(first)
    if (wanted.blocks.length === 0) return []
    // Finds the end of the read before it loads data.
    while (!wanted.isDone) {
      const page = this.#summaries(logId, last, PAGE_BLOCKS)
      for (const block of page) wanted.add(block)
      if (page.length < PAGE_BLOCKS) break
      last = page.at(-1)!.endSeqNum
    }
    return [first, ...this.#blocks(logId, summary.endSeqNum, wanted.blocks.at(-1)!.endSeqNum)]
  }

  /** Frees the beginnings of logs: a block that expires before an older one waits for it. */
  reclaim(limits: ReclaimLimits): Reclaimed {
    const logIds = new Set<string>()
    const dueLog = () =>
      this.#tables.first(
        `SELECT id FROM headwater_logs WHERE trimmed_at <= ?
         UNION ALL SELECT id FROM headwater_logs WHERE expires_at <= ? LIMIT 1`,
        // Deleted logs are due at 0.
        Math.max(limits.trimmedBefore, 0),
        limits.now,
      )?.id as string | undefined
    let left = limits.blocksMax
    let due = dueLog()
    for (; due !== undefined && left > 0; due = dueLog()) {
      const head = this.headOf(due)
      left -= Math.max(this.#free(due, head, limits, left), 1)
      if (head !== undefined) logIds.add(due)
    }
    return { more: due !== undefined, logIds: [...logIds] }
  }

  /** Frees blocks at the beginning of a log; with the last ones, a deleted log. Returns how many. */
  #free(logId: string, head: Head | undefined, limits: ReclaimLimits, blocksMax: number): number {
    const freed: BlockSummary[] = []
    let kept: BlockSummary | undefined
    for (const block of this.#blocksOf(logId)) {
      if (freed.length === blocksMax || (head && !isReclaimable(reclaimTimes(block, head), limits))) {
        kept = block
        break
      }
      freed.push(block)
    }
    const end = freed.at(-1)?.endSeqNum ?? 0
    this.#tables.run('DELETE FROM headwater_blocks WHERE log = ? AND end_seq_num <= ?', logId, end)
    if (head !== undefined) this.#putHead(logId, head, -meteredBytesOf(freed))
    else if (kept === undefined) this.#tables.run('DELETE FROM headwater_logs WHERE id = ?', logId)
    return freed.length
  }

  #insert(logId: string, block: StoredBlock): void {
    const { endSeqNum, firstSeqNum, firstTimestamp, lastTimestamp, meteredBytes, expiresAt, data } = block
    this.#tables.run(
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
      this.#tables.run(
        'INSERT INTO headwater_blocks (log, end_seq_num, part, data) VALUES (?, ?, ?, ?)',
        logId,
        endSeqNum,
        part,
        data.subarray(part * PART_BYTES, (part + 1) * PART_BYTES),
      )
    }
  }

  /** Stores a head, and when the first block can be freed. */
  #putHead(logId: string, head: Head, addedBytes = 0): void {
    const [first] = this.#summaries(logId, 0, 1)
    const { trimmedAt, expiresAt } = first ? reclaimTimes(first, head) : NEVER
    this.#tables.run(
      `UPDATE headwater_logs
       SET head = ?, metered_bytes = metered_bytes + ?, trimmed_at = ?, expires_at = ? WHERE id = ?`,
      JSON.stringify(head),
      addedBytes,
      trimmedAt,
      expiresAt,
      logId,
    )
  }

  /** The first blocks that end after a sequence number, without their data. */
  #summaries(logId: string, after: number, limit: number): BlockSummary[] {
    return this.#tables
      .all(
        `SELECT first_seq_num, end_seq_num, first_timestamp, last_timestamp, metered_bytes, expires_at
         FROM headwater_blocks
         WHERE log = ? AND end_seq_num > ? AND part = 0 ORDER BY end_seq_num LIMIT ?`,
        logId,
        after,
        limit,
      )
      .map(summaryOf)
  }

  /** Yields the blocks of a log without their data, in pages that become larger. */
  *#blocksOf(logId: string): Generator<BlockSummary> {
    let after = 0
    for (let limit = RECLAIM_PAGE_BLOCKS; ; limit *= 2) {
      const page = this.#summaries(logId, after, limit)
      yield* page
      if (page.length < limit) return
      after = page.at(-1)!.endSeqNum
    }
  }

  /** The blocks that end after one sequence number, up to another, inclusive. */
  #blocks(logId: string, after: number, upTo: number): StoredBlock[] {
    const blocks: StoredBlock[] = []
    for (const row of this.#tables.all(
      `SELECT * FROM headwater_blocks WHERE log = ? AND end_seq_num > ? AND end_seq_num <= ?
       ORDER BY end_seq_num, part`,
      logId,
      after,
      upTo,
    )) {
      const data = bytesOf(row.data)
      if (row.part === 0) blocks.push({ ...summaryOf(row), data })
      else {
        const block = blocks.pop()!
        blocks.push({ ...block, data: concatBytes([block.data, data]) })
      }
    }
    return blocks
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
      const [block] = this.#summaries(logId, middle, 1)
      if (block === undefined || block.lastTimestamp >= timestamp) high = middle
      else low = block.endSeqNum
    }
    return low
  }
}

/** Bytes of a row. Drivers return an `ArrayBuffer`, a `Uint8Array` or a `Buffer`. */
export function bytesOf(value: SqliteValue | undefined): Uint8Array {
  if (value instanceof ArrayBuffer) return new Uint8Array(value)
  const { buffer, byteOffset, length } = value as Uint8Array
  return new Uint8Array(buffer, byteOffset, length)
}

function summaryOf(row: SqliteRow): BlockSummary {
  return {
    firstSeqNum: row.first_seq_num as number,
    endSeqNum: row.end_seq_num as number,
    firstTimestamp: row.first_timestamp as number,
    lastTimestamp: row.last_timestamp as number,
    meteredBytes: row.metered_bytes as number,
    expiresAt: row.expires_at as number | null,
  }
}

function meteredBytesOf(blocks: readonly BlockSummary[]): number {
  return blocks.reduce((sum, { meteredBytes }) => sum + meteredBytes, 0)
}
