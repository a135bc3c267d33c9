import { type AppendRequest, type Head, identityOf, isSameHead } from '../../../src/storage/contract.ts'
import { StorageConflict, type StorageFailure } from '../../../src/storage/errors.ts'
import type { LogRow } from './log-row.ts'
import type { LogWrite } from './log-write.ts'
import { isListedAs, type LogState, type SmallAppend, smallAppend } from './small-append.ts'

/** What comes of appends to one log. */
export interface AppendPlan {
  readonly logId: string
  readonly requests: readonly AppendRequest[]
  /** For each request why it is not made. */
  readonly refusals: readonly (StorageConflict | StorageFailure | undefined)[]
  /** The head that this rests on; undefined when there is no log. */
  readonly before: Head | undefined
  /** What is written: a row behind the log's, with which that may have to be listed anew, or the log's row. Nothing when the log stays as it is. */
  readonly added?: SmallAppend
  readonly relisted?: Omit<LogWrite, 'pages'>
  readonly write?: { readonly over: LogRow } & LogWrite
  /** The log as it is then; undefined unless something can be added behind its row. */
  readonly after: LogState | undefined
}

export interface AssumedPlan extends AppendPlan {
  readonly added: SmallAppend
}

/** A plan for a log that nobody has read again: right if this is what the log still is. Undefined when it has to be read. */
export function planAssuming(
  logId: string,
  requests: readonly AppendRequest[],
  before: LogState,
): AssumedPlan | undefined {
  const { accepted, refusals } = judge(logId, requests, before.head)
  if (accepted.length < requests.length) return undefined
  const small = smallAppend(logId, before, accepted)
  if (small === undefined || !isListedAs(before, small.after)) return undefined
  return { logId, requests, refusals, before: before.head, ...small }
}

/** In the order of the requests, each of which is made when the head is the one that it expects. */
export function judge(logId: string, requests: readonly AppendRequest[], before: Head | undefined) {
  const accepted: AppendRequest[] = []
  let head = before
  const refusals = requests.map((request) => {
    if (head === undefined) return new StorageConflict(`there is no log ${logId}`)
    if (!isSameHead(identityOf(head), request.expected))
      return new StorageConflict(`the head of log ${logId} is not the expected one`)
    accepted.push(request)
    head = request.head
    return undefined
  })
  return { accepted, refusals }
}
