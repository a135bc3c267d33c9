import type { AppendRequest } from '../../../src/storage/contract.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import { type AppendPlan, judge } from './append-plan.ts'
import { appendAll } from './log-write.ts'
import { blocksIn } from './page-row.ts'
import { smallAppend } from './small-append.ts'
import { foldedRow, logOf, type StoredLog, stateOf } from './stored-log.ts'

/** The plan for a log that was read. Throws `StorageFailure` of kind `corrupt` when something of it is damaged. */
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
  return { ...plan, write, after: stateOf(logOf(write.row)) }
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
