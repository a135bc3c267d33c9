import { HeadwaterError } from '../../../../src/index.ts'
import { Violation } from '../../harness/violation.ts'
import type { StreamHistory } from '../../model/stream-history.ts'

/** The conditions during a call. */
export interface Circumstances {
  readonly history: StreamHistory
  readonly since: number
  /** Whether storages could fail. */
  readonly mayFail: boolean
  /** Whether the engine was closed or is being closed. */
  readonly isClosing: boolean
}

/** Checks that there was a reason for a failure. Returns the error, checked to be one of headwater's. */
export function checkFailure(error: unknown, circumstances: Circumstances): HeadwaterError {
  if (!HeadwaterError.is(error))
    throw new Violation(
      'a failed call rejects with a HeadwaterError',
      String((error as Error)?.stack ?? error),
    )
  if (hasReason(error.code, circumstances)) return error
  throw new Violation(`\`${error.code}\` has a reason`, error.message)
}

function hasReason(
  code: HeadwaterError['code'],
  { history, since, mayFail, isClosing }: Circumstances,
): boolean {
  const logs = new Set(history.moments.slice(since).map(({ log }) => log))
  switch (code) {
    case 'storage':
    case 'transaction_conflict':
      return mayFail
    case 'closed':
      return isClosing
    case 'stream_deleted':
    case 'stream_deletion_pending':
      return logs.size > 1 || logs.has(undefined)
    case 'stream_not_found':
      return logs.has(undefined)
    case 'resource_already_exists':
      return logs.size > 1 || !logs.has(undefined)
    default:
      return false
  }
}
