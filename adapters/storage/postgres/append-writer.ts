import { concatBytes, utf8 } from '../../../src/model/bytes.ts'
import { macrotask } from '../../../src/runtime/macrotask.ts'
import { appendedBytes, mergeableBlocks, mergedBlock } from '../../../src/storage/block-sizes.ts'
import type { AppendRequest, StoredBlock } from '../../../src/storage/contract.ts'
import { StorageConflict } from '../../../src/storage/errors.ts'
import { identityOf, isSameHead } from '../../../src/storage/heads.ts'
import { type Database, prepared, type Statement } from './database.ts'
import { stateOf, writeStateOf } from './heads.ts'
import type { Tables } from './schema.ts'

/** The most data of one statement, in bytes, unless a single append has more. */
const GROUP_BYTES_MAX = 4 * 1024 * 1024
/** The most appends of one statement, which has eight parameters for each block. */
const GROUP_APPENDS_MAX = 1_000

interface Entry {
  readonly request: AppendRequest
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

/** The appends to one log. */
interface AppendQueue {
  readonly waiting: Entry[]
  isWriting: boolean
}

/**
 * Group commit: the appends to a log that arrive during a statement share the next one. Each log has one
 * statement at a time, and different logs use different connections.
 */
export class StatementWriter {
  readonly #database: Database
  readonly #tables: Tables
  readonly #onAppended: (logId: string) => void
  /**
   * The queue of each log that was appended to within this turn of the event loop, or has a statement in
   * flight.
   */
  readonly #queues = new Map<string, AppendQueue>()
  /** The statements by number of blocks. */
  readonly #statements: (string | Statement)[] = []

  /** Calls `onAppended` after durable appends to a log. It must not throw. */
  constructor(database: Database, tables: Tables, onAppended: (logId: string) => void) {
    this.#database = database
    this.#tables = tables
    this.#onAppended = onAppended
  }

  append(request: AppendRequest): Promise<void> {
    return new Promise((resolve, reject) => {
      const { logId } = request
      let queue = this.#queues.get(logId)
      if (queue === undefined) {
        queue = { waiting: [], isWriting: false }
        this.#queues.set(logId, queue)
      }
      queue.waiting.push({ request, resolve, reject })
      if (!queue.isWriting) void this.#writeAll(logId, queue)
    })
  }

  async #writeAll(logId: string, queue: AppendQueue): Promise<void> {
    const { waiting } = queue
    queue.isWriting = true
    // Waits for further appends of the same turn, which belong in the same group.
    await Promise.resolve()
    while (waiting.length > 0) {
      const group = waiting.splice(0, groupLength(waiting))
      try {
        await this.#write(group.map(({ request }) => request))
        for (const { resolve } of group) resolve()
        this.#onAppended(logId)
      } catch (error) {
        for (const { reject } of group) reject(error)
      }
      // Writers often append as soon as they learn of the last append: their next ones join those that wait.
      if (waiting.length > 0) await macrotask()
      else await Promise.resolve()
    }
    queue.isWriting = false
    await macrotask()
    if (!queue.isWriting && this.#queues.get(logId) === queue) this.#queues.delete(logId)
  }

  /** Appends all or none. */
  async #write(requests: readonly AppendRequest[]): Promise<void> {
    const { logId, expected } = requests[0]!
    const { head } = requests.at(-1)!
    const rows = mergeBlocks(requests)
    this.#statements[rows.length] ??= appendStatement(this.#tables, rows.length)
    const { rows: appended, isRepeated } = await this.#database.run(this.#statements[rows.length]!, [
      utf8(logId),
      expected.epoch,
      expected.seqNum,
      expected.appendId,
      head.tail.seqNum,
      head.appendId,
      stateOf(head),
      writeStateOf(head),
      rows.reduce((sum, { meteredBytes }) => sum + meteredBytes, 0),
      head.trims.at(-1)?.point ?? null,
      head.trims[0]?.at ?? null,
      ...rows.flatMap(parametersOf),
    ])
    if (appended.length > 0) return
    // The first attempt may have been committed although its connection was lost.
    if (isRepeated && (await this.#hasAppended(logId, rows.at(-1)!))) return
    throw new StorageConflict(`log ${logId} does not have the expected head`)
  }

  async #hasAppended(logId: string, { endSeqNum, appendId }: BlockRow): Promise<boolean> {
    const { logs, blocks } = this.#tables
    const found = await this.#database.query(
      `SELECT 1 FROM ${logs} WHERE id = $1 AND append_id = $3
       UNION ALL SELECT 1 FROM ${blocks} WHERE log = $1 AND end_seq_num = $2 AND append_id = $3`,
      [utf8(logId), endSeqNum, appendId],
    )
    return found.length > 0
  }
}

/** How many of the appends at the front can share a statement: each expects the head of the one before. */
function groupLength(waiting: readonly Entry[]): number {
  let bytes = 0
  const end = waiting.findIndex(({ request }, index) => {
    bytes += appendedBytes(request)
    if (index === 0) return false
    const { head } = waiting[index - 1]!.request
    return (
      bytes > GROUP_BYTES_MAX || index >= GROUP_APPENDS_MAX || !isSameHead(identityOf(head), request.expected)
    )
  })
  return end === -1 ? waiting.length : end
}

const HEAD_PARAMETERS = 11
const BLOCK_COLUMNS = ['bigint', 'bigint', 'bigint', 'bigint', 'bigint', 'bigint', 'text', 'bytea'] as const
/** Statements with more blocks are rare, so the server does not keep their plans. */
const PREPARED_BLOCKS_MAX = 4

function parametersOf(row: BlockRow): unknown[] {
  const { endSeqNum, firstSeqNum, firstTimestamp, lastTimestamp, meteredBytes, expiresAt, appendId, data } =
    row
  return [endSeqNum, firstSeqNum, firstTimestamp, lastTimestamp, meteredBytes, expiresAt, appendId, data]
}

/** Replaces the expected head and adds the blocks. Returns a row for each block, none after a conflict. */
function appendStatement({ logs, blocks }: Tables, count: number): string | Statement {
  const rows = Array.from({ length: count }, (_, row) => {
    const first = HEAD_PARAMETERS + 1 + row * BLOCK_COLUMNS.length
    return `(${BLOCK_COLUMNS.map((type, column) => `$${first + column}::${type}`).join(', ')})`
  })
  const text = `WITH head AS (
      UPDATE ${logs} SET seq_num = $5, append_id = $6, state = $7, write_state = COALESCE($8, write_state),
        metered_bytes = metered_bytes + $9, trimmed_to = $10,
        due_at = CASE WHEN trimmed_to IS DISTINCT FROM $10
          THEN COALESCE(LEAST(due_at, $11), due_at, $11) ELSE due_at END
      WHERE id = $1 AND epoch = $2 AND seq_num = $3 AND append_id = $4 AND NOT is_deleted
      RETURNING id
    )
    INSERT INTO ${blocks} (log, end_seq_num, first_seq_num, first_timestamp, last_timestamp, metered_bytes,
      expires_at, append_id, data)
    SELECT head.id, b.* FROM head, (VALUES ${rows.join(', ')}) AS b
    RETURNING 1`
  return count <= PREPARED_BLOCKS_MAX ? prepared(text) : text
}

/** A row of blocks: the records of one append, or of several. */
interface BlockRow extends StoredBlock {
  /** The last append in the block. */
  readonly appendId: string
}

/** Joins the blocks of consecutive appends, as far as the contract allows. */
function mergeBlocks(requests: readonly AppendRequest[]): BlockRow[] {
  const rows = requests.flatMap(({ blocks, head: { appendId } }) =>
    blocks.map((block): BlockRow => ({ ...block, appendId })),
  )
  return mergeableBlocks(rows).map((group) => {
    const { appendId } = group.at(-1)!
    return { ...mergedBlock(group, concatBytes), appendId }
  })
}
