import type { AppendRequest } from '../../../src/storage/contract.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import { type AppendPlan, judge } from './append-plan.ts'
import { lastBehind } from './append-row.ts'
import { appendAll, relist } from './log-write.ts'
import { blocksIn } from './page-row.ts'
import type { WriteTransaction } from './schema.ts'
import { isListedAs, smallAppend, stateOf } from './small-append.ts'
import { foldedRow, isMarked, readLog } from './stored-log.ts'

/**
 * A plan for a log that is read for it. After an attempt whose outcome is not known, it is that of the attempt when it was made, else a new one; when
 * others have written since, nobody can tell. Rejects with `StorageFailure` of kind `corrupt` when something of the log is damaged.
 */
export async function planReading(
  transaction: WriteTransaction,
  logId: string,
  requests: readonly AppendRequest[],
  attempt: AppendPlan | undefined,
): Promise<AppendPlan> {
  const row = await transaction.objectStore('logs').get(logId)
  if (row === undefined) return planOn(attempt, undefined) ?? refused(logId, requests)
  const [last, takesAppends] = await Promise.all([
    lastBehind(transaction, logId, row),
    isMarked(transaction, logId, row.revision),
  ])
  const state = stateOf(row, last)
  const before = takesAppends ? state : undefined
  const made = planOn(attempt, state.head.appendId)
  if (made !== undefined) return { ...made, after: before }
  const { accepted, refusals } = judge(logId, requests, state.head)
  const plan = { logId, requests, refusals, before: state.head }
  if (accepted.length === 0) return { ...plan, after: before }
  // What is damaged takes nothing more.
  for (const page of [row.tail, last]) if (page !== undefined) blocksIn(logId, page)
  const small = before && smallAppend(logId, before, accepted)
  if (small !== undefined) {
    const relisted = isListedAs(state, small.after) ? {} : { relisted: relist(logId, row, row, small.after) }
    return { ...plan, ...small, ...relisted }
  }
  const log = (await readLog(transaction, logId))!
  const write = appendAll(logId, foldedRow(logId, log), accepted)
  return { ...plan, write: { ...write, over: row }, after: stateOf(write.row) }
}

/** Undefined when the attempt was not made, and there has to be another plan. */
function planOn(attempt: AppendPlan | undefined, appendId: string | undefined): AppendPlan | undefined {
  if (attempt === undefined) return undefined
  const { logId, requests, refusals, before, added, write, after } = attempt
  // What is not an append, such as freeing blocks, leaves the head of the same append.
  if ((added ?? write) === undefined || before === undefined || appendId === before.appendId) return undefined
  const rest = { logId, requests, before, after: undefined }
  if (appendId === after?.head.appendId) return { ...rest, refusals }
  const unknown = new StorageFailure('io', `the connection was lost while log ${logId} was appended to`, {
    nothingWritten: false,
  })
  return { ...rest, refusals: refusals.map((refusal) => refusal ?? unknown) }
}

function refused(logId: string, requests: readonly AppendRequest[]): AppendPlan {
  const { refusals } = judge(logId, requests, undefined)
  return { logId, requests, refusals, before: undefined, after: undefined }
}
