import type { AppendRequest, Head } from '../../../src/storage/contract.ts'
import { type AppendRow, headAfter } from './append-row.ts'
import type { LogRow } from './log-row.ts'
import { earliestExpiry, pageOf, sizeInPage } from './page.ts'
import type { AppendKey } from './schema.ts'

/** What is larger, of one group, is worth a page. */
const APPEND_BYTES_MAX = 2 * 1024

/** Whoever reads from the midst of a group looks so far in front for where it begins. */
export const APPEND_RECORDS_MAX = 16

/** What is behind a row becomes a page, together with the row's tail: many make that rare, and slow down those who read all of them. */
const BEHIND_ROWS_MAX = 100
const BEHIND_BYTES_MAX = 32 * 1024

/** What is known of a log without its blocks. */
export interface LogState {
  /** As it is stored: its head is that before all that is behind it. */
  readonly row: LogRow
  readonly head: Head
  readonly rowsBehind: number
  /** Of the row's tail and what is behind it. */
  readonly bytes: number
}

/** What is added behind a row. */
export interface SmallAppend {
  readonly key: AppendKey
  readonly row: AppendRow
}

/**
 * Appends of which each expects the head that the one before leaves, the first that of the log, as one row behind the log's; undefined unless that is all
 * that changes: they are small, and the log's row stays right in what it says of the rest.
 */
export function smallAppend(
  logId: string,
  { row, head, rowsBehind, bytes }: LogState,
  appends: readonly AppendRequest[],
): { readonly added: SmallAppend; readonly after: LogState } | undefined {
  const blocks = appends.map(({ block }) => block)
  const next = appends.at(-1)!.head
  const size = blocks.reduce((sum, block) => sum + sizeInPage(block), 0)
  const firstSeqNum = head.tail.seqNum
  const fits =
    rowsBehind < BEHIND_ROWS_MAX &&
    size <= APPEND_BYTES_MAX &&
    bytes + size <= BEHIND_BYTES_MAX &&
    next.tail.seqNum - firstSeqNum <= APPEND_RECORDS_MAX
  const isAtTail = blocks[0]!.firstSeqNum === firstSeqNum && blocks.at(-1)!.endSeqNum === next.tail.seqNum
  const expiry = earliestExpiry(blocks) ?? Number.POSITIVE_INFINITY
  const isListed =
    expiry === Number.POSITIVE_INFINITY || (row.expiryChoreAt ?? Number.POSITIVE_INFINITY) <= expiry
  if (!fits || !isAtTail || !isListed || !movesOnly(head, next)) return undefined
  const added: AppendRow = {
    revision: row.revision,
    appendId: next.appendId,
    appendedAt: next.appendedAt,
    timestamp: next.tail.timestamp,
    ...pageOf(blocks),
  }
  return {
    added: { key: [logId, firstSeqNum, row.revision], row: added },
    after: { row, head: headAfter(head, added), rowsBehind: rowsBehind + 1, bytes: bytes + size },
  }
}

/** Whether a head is another's after appends that neither trim nor fence. */
function movesOnly(before: Head, after: Head): boolean {
  return (
    before.epoch === after.epoch &&
    before.fencingToken === after.fencingToken &&
    before.trimPoint === after.trimPoint &&
    before.trims.length === after.trims.length &&
    before.trims.every(({ point, at }, index) => {
      const trim = after.trims[index]!
      return trim.point === point && trim.at === at
    })
  )
}
