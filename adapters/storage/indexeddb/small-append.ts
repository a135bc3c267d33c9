import type { AppendRequest, Head } from '../../../src/storage/contract.ts'
import type { AppendRow } from './append-row.ts'
import { type ChoreTimes, type LogRow, listedFor } from './log-row.ts'
import { pageOf, sizeInPage } from './page.ts'
import type { AppendKey } from './schema.ts'

/** What is larger, of one group, is worth a page. */
const APPEND_BYTES_MAX = 2 * 1024

/** Whoever reads from the midst of a group looks so far in front for where it begins. */
export const APPEND_RECORDS_MAX = 16

/** What is behind a row becomes a page, together with the row's tail: many make that rare, and slow down those who read all of them. */
const ROWS_MAX = 100
const BYTES_MAX = 30 * 1024

/** What is known of a log without its blocks. */
export interface LogState extends ChoreTimes, Pick<LogRow, 'revision' | 'freedBelow'> {
  readonly head: Head
  /** Of all that is behind the row, as in {@link AppendRow}. */
  readonly rows: number
  readonly bytes: number
  readonly meteredBytes: number
}

/** What is added behind a row. */
export interface SmallAppend {
  readonly key: AppendKey
  readonly row: AppendRow
}

/** `last` is the last that is behind the row. */
export function stateOf(row: LogRow, last?: AppendRow): LogState {
  const { revision, freedBelow, expiryChoreAt, trimChoreAt } = row
  const { head, rows, bytes, meteredBytes } = last ?? { head: row.head, rows: 0, bytes: 0, meteredBytes: 0 }
  return { revision, freedBelow, expiryChoreAt, trimChoreAt, head, rows, bytes, meteredBytes }
}

/**
 * Appends of which each expects the head that the one before leaves, the first that of the log, as one row behind the log's, and what there is then, with
 * the times at which the log has to be listed; undefined when they are not small.
 */
export function smallAppend(
  logId: string,
  before: LogState,
  appends: readonly AppendRequest[],
): { readonly added: SmallAppend; readonly after: LogState } | undefined {
  const { revision, freedBelow } = before
  const blocks = appends.map(({ block }) => block)
  const { head } = appends.at(-1)!
  const size = blocks.reduce((sum, block) => sum + sizeInPage(block), 0)
  const firstSeqNum = before.head.tail.seqNum
  const [rows, bytes] = [before.rows + 1, before.bytes + size]
  const isSmall = size <= APPEND_BYTES_MAX && head.tail.seqNum - firstSeqNum <= APPEND_RECORDS_MAX
  if (!isSmall || rows > ROWS_MAX || bytes > BYTES_MAX) return undefined
  const meteredBytes = blocks.reduce((sum, block) => sum + block.meteredBytes, before.meteredBytes)
  return {
    added: {
      key: [logId, firstSeqNum, revision],
      row: { revision, head, rows, bytes, meteredBytes, ...pageOf(blocks) },
    },
    after: {
      ...before,
      ...{ head, rows, bytes, meteredBytes },
      ...listedFor(before, blocks, { head, freedBelow }),
    },
  }
}

/** Whether the log is listed as early as before. */
export function isListedAs(before: ChoreTimes, after: ChoreTimes): boolean {
  return after.expiryChoreAt === before.expiryChoreAt && after.trimChoreAt === before.trimChoreAt
}
