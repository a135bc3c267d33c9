import type { AppendRequest, Head } from '../../../src/storage/contract.ts'
import { StorageConflict, StorageFailure } from '../../../src/storage/errors.ts'
import { admits, appendAll, type LogWrite } from './log-row.ts'
import { blocksIn } from './page-row.ts'
import { type LogState, type SmallAppend, smallAppend, stateOf, stateOfRow } from './small-append.ts'
import { foldedRow, type StoredLog } from './stored-log.ts'

/** What comes of appends to one log. */
export interface AppendPlan {
  readonly logId: string
  readonly requests: readonly AppendRequest[]
  /** For each request why it is not made. */
  readonly refusals: readonly (StorageConflict | StorageFailure | undefined)[]
  /** The head that this rests on; undefined when there is no log. */
  readonly before: Head | undefined
  /** What is written: a row behind the log's, or the log's row. Neither when the log stays as it is. */
  readonly added?: SmallAppend | undefined
  readonly write?: LogWrite | undefined
  /** The log as it is then; undefined unless something can be added behind its row. */
  readonly after: LogState | undefined
}

/** In the order of the requests, each of which is made when the head is the one that it expects. */
export function planAppends(
  logId: string,
  requests: readonly AppendRequest[],
  log: StoredLog | undefined,
): AppendPlan {
  const before = log && stateOf(log)
  const { accepted, refusals } = judge(logId, requests, before?.head)
  const plan = { logId, requests, refusals, before: before?.head }
  const after = log?.isOpen ? before : undefined
  if (log === undefined || accepted.length === 0) return { ...plan, after }
  const folded = foldedRow(logId, log)
  // What is damaged takes nothing more.
  blocksIn(logId, folded.tail)
  const small = after && smallAppend(logId, after, accepted)
  if (small !== undefined) return { ...plan, ...small }
  const write = appendAll(logId, folded, accepted)
  return { ...plan, write, after: stateOfRow(write.row) }
}

/** The plan for a log that nobody has read again, which is worth trying if this is what the log still is; undefined when it has to be read. */
export function planAssuming(
  logId: string,
  requests: readonly AppendRequest[],
  before: LogState,
): AppendPlan | undefined {
  const { accepted, refusals } = judge(logId, requests, before.head)
  if (accepted.length < requests.length) return undefined
  const small = smallAppend(logId, before, accepted)
  return small && { logId, requests, refusals, before: before.head, ...small }
}

/**
 * The plan when the outcome of an earlier attempt is not known, from the log that is there now: that of the attempt when it was made, else
 * a new one. When others have written since, nobody can tell.
 */
export function planAgain(attempt: AppendPlan, log: StoredLog | undefined): AppendPlan {
  const { logId, requests, before } = attempt
  const now = log && stateOf(log)
  const wrote = attempt.added ?? attempt.write
  // What is not an append, such as freeing blocks, leaves the head of the same append.
  if (wrote === undefined || before === undefined || now?.head.appendId === before.appendId) {
    return planAppends(logId, requests, log)
  }
  const rest = { logId, requests, before, after: log?.isOpen ? now : undefined }
  if (now?.head.appendId === attempt.after?.head.appendId) return { ...rest, refusals: attempt.refusals }
  const unknown = new StorageFailure('io', `the connection was lost while log ${logId} was appended to`, {
    nothingWritten: false,
  })
  return { ...rest, refusals: attempt.refusals.map((refusal) => refusal ?? unknown) }
}

function judge(logId: string, requests: readonly AppendRequest[], before: Head | undefined) {
  const accepted: AppendRequest[] = []
  let head = before
  const refusals = requests.map((request) => {
    if (head === undefined) return new StorageConflict(`there is no log ${logId}`)
    if (!admits(head, request)) return new StorageConflict(`the head of log ${logId} is not the expected one`)
    accepted.push(request)
    head = request.head
    return undefined
  })
  return { accepted, refusals }
}
