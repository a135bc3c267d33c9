import type { AppendRequest } from '../../../src/storage/contract.ts'
import { StorageConflict, StorageFailure } from '../../../src/storage/errors.ts'
import { admits, appendAll, type LogRow, type LogWrite } from './log-row.ts'

/** What comes of appends to one log. */
export interface AppendPlan {
  readonly logId: string
  readonly requests: readonly AppendRequest[]
  /** For each request why it is not made. */
  readonly refusals: readonly (StorageConflict | StorageFailure | undefined)[]
  /** The row that this rests on. */
  readonly before: LogRow | undefined
  /** What the log becomes; undefined when it stays as it is. */
  readonly write: LogWrite | undefined
}

/** In the order of the requests, each of which is made when the head is the one that it expects. */
export function planAppends(
  logId: string,
  requests: readonly AppendRequest[],
  row: LogRow | undefined,
): AppendPlan {
  const accepted: AppendRequest[] = []
  let head = row?.head
  const refusals = requests.map((request) => {
    if (head === undefined) return new StorageConflict(`there is no log ${logId}`)
    if (!admits(head, request)) return new StorageConflict(`the head of log ${logId} is not the expected one`)
    accepted.push(request)
    head = request.head
    return undefined
  })
  const write = row === undefined || accepted.length === 0 ? undefined : appendAll(logId, row, accepted)
  return { logId, requests, refusals, before: row, write }
}

/**
 * The plan when the outcome of an earlier attempt is not known, from the row that is there now: that of the attempt when it was made, else
 * a new one. When others have written since, nobody can tell.
 */
export function planAgain(attempt: AppendPlan, row: LogRow | undefined): AppendPlan {
  const { logId, requests, before, write } = attempt
  // What is not an append, such as freeing blocks, leaves another row of the same append.
  if (write === undefined || before === undefined || row?.head.appendId === before.head.appendId) {
    return planAppends(logId, requests, row)
  }
  if (row !== undefined && row.head.appendId === write.row.head.appendId)
    return { ...attempt, write: undefined }
  const unknown = new StorageFailure('io', `the connection was lost while log ${logId} was appended to`, {
    nothingWritten: false,
  })
  return {
    ...attempt,
    refusals: attempt.refusals.map((refusal) => refusal ?? unknown),
    write: undefined,
  }
}

/** Whether what was read is what was assumed. The append tells apart what has the same revision because the log was made anew. */
export function isSameRow(a: LogRow | undefined, b: LogRow | undefined): boolean {
  return a?.revision === b?.revision && a?.head.appendId === b?.head.appendId
}
