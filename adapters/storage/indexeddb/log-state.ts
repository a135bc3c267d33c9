import type { AppendRequest, Head } from '../../../src/storage/contract.ts'
import { choreTimesAfter } from './chores.ts'
import { encodePage, sizeInPage } from './page.ts'
import type { ChoreTimes, LogRow, TailKey, TailRow } from './schema.ts'

/** A group of appends above this size is written to a page. */
const TAIL_ROW_BYTES_MAX = 2 * 1024

/** A read from the middle of a tail row looks back this far for its beginning. */
export const TAIL_ROW_RECORDS_MAX = 16

/**
 * Beyond these limits, all tail rows and the tail of the log row become a page. High limits make that rare,
 * and reads of all tail rows slow.
 */
const TAIL_ROWS_MAX = 100
const TAIL_BYTES_MAX = 30 * 1024

/** Each cached state takes a few hundred bytes. */
const RECENT_LOGS_MAX = 256

/** The state of a log without its blocks. */
export interface LogState extends ChoreTimes, Pick<LogRow, 'revision' | 'freedBelow'> {
  readonly head: Head
  /** Totals over all tail rows, as in {@link TailRow}. */
  readonly rows: number
  readonly bytes: number
  readonly meteredBytes: number
}

/** A tail row to add. */
export interface TailInsert {
  readonly key: TailKey
  readonly row: TailRow
}

export function logStateOf(row: LogRow, lastTailRow?: TailRow): LogState {
  const { revision, freedBelow, expiryChoreAt, trimChoreAt } = row
  const last = lastTailRow ?? { head: row.head, rows: 0, bytes: 0, meteredBytes: 0 }
  const { head, rows, bytes, meteredBytes } = last
  return { revision, freedBelow, expiryChoreAt, trimChoreAt, head, rows, bytes, meteredBytes }
}

/**
 * The tail row for consecutive appends, the first of which builds on `before`, and the state after it.
 * Undefined if the appends are too large for one, or too many tail rows exist.
 */
export function planTailInsert(
  logId: string,
  before: LogState,
  appends: readonly AppendRequest[],
): { readonly insert: TailInsert; readonly after: LogState } | undefined {
  const { revision, freedBelow } = before
  const blocks = appends.map(({ block }) => block)
  const { head } = appends.at(-1)!
  const size = blocks.reduce((sum, block) => sum + sizeInPage(block), 0)
  const firstSeqNum = before.head.tail.seqNum
  const rows = before.rows + 1
  const bytes = before.bytes + size
  const isSmall = size <= TAIL_ROW_BYTES_MAX && head.tail.seqNum - firstSeqNum <= TAIL_ROW_RECORDS_MAX
  if (!isSmall || rows > TAIL_ROWS_MAX || bytes > TAIL_BYTES_MAX) return undefined
  const meteredBytes = blocks.reduce((sum, block) => sum + block.meteredBytes, before.meteredBytes)
  return {
    insert: {
      key: [logId, firstSeqNum, revision],
      row: { revision, head, rows, bytes, meteredBytes, ...encodePage(blocks) },
    },
    after: {
      ...before,
      ...{ head, rows, bytes, meteredBytes },
      ...choreTimesAfter(before, blocks, { head, freedBelow }),
    },
  }
}

/** A cache of the logs that this session appended to most recently. */
export class RecentLogs {
  /** In order of use. */
  readonly #logs = new Map<string, LogState>()

  get(logId: string): LogState | undefined {
    return this.#logs.get(logId)
  }

  set(logId: string, state: LogState): void {
    this.#logs.delete(logId)
    this.#logs.set(logId, state)
    if (this.#logs.size <= RECENT_LOGS_MAX) return
    const [oldest] = this.#logs.keys()
    this.#logs.delete(oldest!)
  }

  delete(logId: string): void {
    this.#logs.delete(logId)
  }
}
