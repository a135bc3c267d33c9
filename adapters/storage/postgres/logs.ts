import { concatBytes, lossyTextOf, utf8 } from '../../../src/model/bytes.ts'
import { BATCH_RECORDS_MAX } from '../../../src/model/limits.ts'
import { trackExternalWork } from '../../../src/runtime/clock.ts'
import { macrotask } from '../../../src/runtime/macrotask.ts'
import type { BlockSummary } from '../../../src/storage/block-collector.ts'
import { appendedBytes, mergeableBlocks, mergedBlock } from '../../../src/storage/block-sizes.ts'
import type {
  AppendRequest,
  Head,
  HeadIdentity,
  LogStart,
  ReadRange,
  StoredBlock,
} from '../../../src/storage/contract.ts'
import { StorageConflict } from '../../../src/storage/errors.ts'
import { GroupCommit, type PendingItem } from '../../../src/storage/group-commit.ts'
import { emptyHead, identityOf, isSameHead } from '../../../src/storage/heads.ts'
import { bytesOf, bytesOfBase64, numberOf, type PostgresRow } from './connections.ts'
import { type Database, prepared } from './database.ts'
import { unwrittenFailure } from './failures.ts'
import type { Tables } from './schema.ts'

/** The most data of one statement, in bytes, unless a single append has more. */
const GROUP_BYTES_MAX = 4 * 1024 * 1024

/**
 * The most rows that a statement visits: few at first, because those beyond the limits of the read are
 * visited for nothing, and large rows reach the limits soon.
 */
const ROWS_MAX = { first: 64, next: 1_000 }

/** A row of blocks: the records of one append, or of several. */
interface BlockRow extends StoredBlock {
  /** The last append in the block. */
  readonly appendId: string
}

/** The appends to one log: those that arrive during a statement share the next one. */
interface Appender {
  readonly group: GroupCommit<AppendRequest>
  /** The number of appends that have not settled. */
  calls: number
}

/** Heads and blocks. Each log has one statement at a time that appends; those of others run beside it. */
export class PostgresLogs {
  readonly #database: Database
  readonly #statements: ReturnType<typeof statementsOf>
  readonly #onAppended: (logId: string) => void
  /** Those with appends that have not settled. */
  readonly #appenders = new Map<string, Appender>()

  /** Calls `onAppended` after durable appends to a log. It must not throw. */
  constructor(database: Database, tables: Tables, onAppended: (logId: string) => void) {
    this.#database = database
    this.#statements = statementsOf(tables)
    this.#onAppended = onAppended
  }

  async head(logId: string, known?: HeadIdentity): Promise<Head | undefined> {
    const [row] = await this.#database.query(this.#statements.head, [utf8(logId), known?.seqNum ?? null])
    return row && { ...headOf(row), ...(known && { isReplaced: isReplaced(row, known) }) }
  }

  async measure(logIds: readonly string[]): Promise<number[]> {
    const rows = await this.#database.query(this.#statements.measure, [logIds.map(utf8)])
    const measured = new Map(
      rows.map(({ id, metered_bytes }) => [lossyTextOf(bytesOf(id)), numberOf(metered_bytes)]),
    )
    return logIds.map((logId) => measured.get(logId) ?? 0)
  }

  async append(request: AppendRequest): Promise<void> {
    const appender = this.#appenderOf(request.logId)
    appender.calls++
    try {
      await appender.group.add(request)
    } finally {
      if (--appender.calls === 0) this.#appenders.delete(request.logId)
    }
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
      const page = await this.#database.query(this.#statements.page, [
        utf8(logId),
        start,
        // No block is longer, so the index ends the search.
        endSeqNum + BATCH_RECORDS_MAX,
        endSeqNum,
        rows,
        Math.max(1, bytes),
        Math.max(1, records),
      ])
      for (const block of page.map(blockOf)) {
        blocks.push(block)
        bytes -= block.meteredBytes
        records -= block.endSeqNum - block.firstSeqNum
      }
      if (page.length < rows || bytes <= 0 || records <= 0) break
      start = blocks.at(-1)!.endSeqNum
      rowsMax = ROWS_MAX.next
    }
    return blocks
  }

  #appenderOf(logId: string): Appender {
    const existing = this.#appenders.get(logId)
    if (existing !== undefined) return existing
    const group = new GroupCommit<AppendRequest>(
      (items) => this.#appendGroup(logId, items),
      appendedBytes,
      GROUP_BYTES_MAX,
      // Writers often append as soon as they learn of the last append: their next ones share a statement.
      () => trackExternalWork(macrotask()),
    )
    const appender = { group, calls: 0 }
    this.#appenders.set(logId, appender)
    return appender
  }

  async #appendGroup(logId: string, group: readonly PendingItem<AppendRequest>[]): Promise<void> {
    for (const chain of chainsOf(group)) {
      try {
        await this.#appendChain(chain.map(({ item }) => item))
        for (const { resolve } of chain) resolve()
        this.#onAppended(logId)
      } catch (error) {
        for (const { reject } of chain) reject(error)
      }
    }
  }

  /** Appends all or none. */
  async #appendChain(requests: readonly AppendRequest[]): Promise<void> {
    const { logId, expected } = requests[0]!
    const { head } = requests.at(-1)!
    const rows = rowsOf(requests)
    const { rows: appended, isRepeated } = await this.#database.run(this.#statements.append, [
      utf8(logId),
      expected.epoch,
      expected.seqNum,
      expected.appendId,
      head.tail.seqNum,
      head.appendId,
      stateOf(head),
      head.writeState === undefined ? null : JSON.stringify(head.writeState),
      rows.reduce((sum, { meteredBytes }) => sum + meteredBytes, 0),
      head.trims.at(-1)?.point ?? null,
      head.trims[0]?.at ?? null,
      JSON.stringify(withoutData(rows)),
      concatBytes(rows.map(({ data }) => data)),
      rows[0]!.expiresAt,
    ])
    if (appended.length > 0) return
    // The first attempt may have been committed although its connection was lost.
    if (isRepeated && (await this.#hasAppended(logId, rows.at(-1)!))) return
    throw new StorageConflict(`log ${logId} does not have the expected head`)
  }

  async #hasAppended(logId: string, { endSeqNum, appendId }: BlockRow): Promise<boolean> {
    const found = await this.#database.query(this.#statements.appended, [utf8(logId), endSeqNum, appendId])
    return found.length > 0
  }

  async #seqNumAt(logId: string, timestamp: number): Promise<number> {
    const [row] = await this.#database.query(this.#statements.seqNumAt, [utf8(logId), timestamp])
    return row === undefined ? 0 : numberOf(row.low)
  }
}

function statementsOf({ logs, blocks }: Tables) {
  return {
    // With the block that contains the record before a known tail, if both are there.
    head: prepared(`SELECT l.epoch, l.seq_num, l.append_id, l.state, l.extensions, l.write_state,
        b.first_seq_num AS known_first, b.end_seq_num AS known_end, b.append_id AS known_id
      FROM ${logs} l LEFT JOIN LATERAL (
        SELECT first_seq_num, end_seq_num, append_id FROM ${blocks}
        WHERE log = $1 AND end_seq_num >= $2 ORDER BY end_seq_num LIMIT 1
      ) b ON true
      WHERE l.id = $1 AND NOT l.is_deleted`),
    // Replaces the expected head and adds the blocks. Returns a row for each block, none after a conflict.
    append: prepared(`WITH head AS (
        UPDATE ${logs} SET seq_num = $5, append_id = $6, state = $7,
          write_state = COALESCE($8, write_state), metered_bytes = metered_bytes + $9, trimmed_to = $10,
          due_at = CASE WHEN trimmed_to IS DISTINCT FROM $10
            THEN COALESCE(LEAST(due_at, $11), due_at, $11) ELSE due_at END,
          expires_at = CASE WHEN metered_bytes = 0 THEN $14 ELSE expires_at END
        WHERE id = $1 AND epoch = $2 AND seq_num = $3 AND append_id = $4 AND NOT is_deleted
        RETURNING id
      )
      INSERT INTO ${blocks} (log, end_seq_num, first_seq_num, first_timestamp, last_timestamp, metered_bytes,
        expires_at, append_id, data)
      SELECT head.id, b."endSeqNum", b."firstSeqNum", b."firstTimestamp", b."lastTimestamp",
        b."meteredBytes", b."expiresAt", b."appendId", substring($13::bytea FROM b.start FOR b.length)
      FROM head, json_to_recordset($12::json) AS b ("endSeqNum" bigint, "firstSeqNum" bigint,
        "firstTimestamp" bigint, "lastTimestamp" bigint, "meteredBytes" bigint, "expiresAt" bigint,
        "appendId" text, start int, length int)
      RETURNING 1`),
    // Whether an append is the last one, or the last one of a block.
    appended: `SELECT 1 FROM ${logs} WHERE id = $1 AND append_id = $3
      UNION ALL SELECT 1 FROM ${blocks} WHERE log = $1 AND end_seq_num = $2 AND append_id = $3`,
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

/** Splits a group where an append does not expect the head that the one before it leaves. */
function chainsOf(group: readonly PendingItem<AppendRequest>[]): PendingItem<AppendRequest>[][] {
  const chains: PendingItem<AppendRequest>[][] = []
  for (const pending of group) {
    const chain = chains.at(-1)
    const before = chain?.at(-1)
    if (before && isSameHead(identityOf(before.item.head), pending.item.expected)) chain!.push(pending)
    else chains.push([pending])
  }
  return chains
}

/** Joins the blocks of consecutive appends, as far as the contract allows. */
function rowsOf(requests: readonly AppendRequest[]): BlockRow[] {
  const rows = requests.flatMap(({ blocks, head: { appendId } }) =>
    blocks.map((block): BlockRow => ({ ...block, appendId })),
  )
  return mergeableBlocks(rows).map((group) => {
    const { appendId } = group.at(-1)!
    return { ...mergedBlock(group, concatBytes), appendId }
  })
}

/** The rows with the places of their data in that of all, from 1. */
function withoutData(rows: readonly BlockRow[]): object[] {
  let start = 1
  return rows.map(({ data, ...row }) => {
    const placed = { ...row, start, length: data.length }
    start += data.length
    return placed
  })
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
  return { ...summaryOf(row), data: bytesOfBase64(row.data) }
}

/** A block without its data. */
export function summaryOf(row: PostgresRow): BlockSummary {
  return {
    firstSeqNum: numberOf(row.first_seq_num),
    endSeqNum: numberOf(row.end_seq_num),
    firstTimestamp: numberOf(row.first_timestamp),
    lastTimestamp: numberOf(row.last_timestamp),
    meteredBytes: numberOf(row.metered_bytes),
    expiresAt: row.expires_at === null ? null : numberOf(row.expires_at),
  }
}

/** The part of a head that has no separate column. */
type State = Pick<Head, 'trimPoint' | 'fencingToken' | 'appendedAt' | 'trims'> & {
  readonly timestamp: number
}

/** The column `state`. */
function stateOf({ tail, trimPoint, fencingToken, appendedAt, trims }: Head): string {
  const state: State = { timestamp: tail.timestamp, trimPoint, fencingToken, appendedAt, trims }
  return JSON.stringify(state)
}

/** The columns of a head. */
export const HEAD_COLUMNS = 'epoch, seq_num, append_id, state, extensions, write_state'

/** The head in {@link HEAD_COLUMNS}. */
export function headOf({ epoch, seq_num, append_id, state, extensions, write_state }: PostgresRow): Head {
  let rest: State
  let extended: Pick<Head, 'extensions'> = {}
  let written: Pick<Head, 'writeState'> = {}
  try {
    rest = JSON.parse(String(state))
    if (extensions !== null) extended = { extensions: JSON.parse(String(extensions)) }
    if (write_state !== null) written = { writeState: JSON.parse(String(write_state)) }
  } catch (error) {
    throw unwrittenFailure('corrupt', 'the head of a log is damaged', error)
  }
  return {
    epoch: numberOf(epoch),
    tail: { seqNum: numberOf(seq_num), timestamp: rest.timestamp },
    trimPoint: rest.trimPoint,
    fencingToken: rest.fencingToken,
    appendId: String(append_id),
    appendedAt: rest.appendedAt,
    trims: rest.trims,
    ...extended,
    ...written,
  }
}

/** The row of a new log, as JSON. */
export function newLogRow(epoch: number, createdAt: number, start?: LogStart) {
  const head = emptyHead(epoch, createdAt, start)
  return { epoch, seq_num: head.tail.seqNum, state: stateOf(head) }
}
