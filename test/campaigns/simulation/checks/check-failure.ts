import { HeadwaterError } from '../../../../src/index.ts'
import type { StreamHistory } from '../stream-history.ts'
import { Violation } from '../violation.ts'

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
  if (!HeadwaterError.is(error)) {
    throw new Violation(
      'a failed call rejects with a HeadwaterError',
      String((error as Error)?.stack ?? error),
    )
  }
  const reason = reasonMissing(error.code, circumstances)
  if (reason !== undefined) throw new Violation(`\`${error.code}\` only when ${reason}`, error.message)
  return error
}

function reasonMissing(
  code: HeadwaterError['code'],
  { history, since, mayFail, isClosing }: Circumstances,
): string | undefined {
  const moments = history.moments.slice(since)
  const isMissing = moments.some(({ log }) => log === undefined)
  const isReplaced = moments.some(({ log }) => log !== moments[0]!.log)
  switch (code) {
    case 'storage':
      return mayFail ? undefined : 'the storage fails'
    case 'closed':
      return isClosing ? undefined : 'the engine closes'
    case 'stream_deleted':
      return isReplaced || isMissing ? undefined : 'the stream is deleted'
    case 'stream_not_found':
      return isMissing ? undefined : 'there is no stream'
    case 'stream_deletion_pending':
      return isReplaced || isMissing ? undefined : 'the stream is deleted'
    case 'resource_already_exists':
      return moments.some(({ log }) => log !== undefined) ? undefined : 'there is a stream'
    case 'transaction_conflict':
      return mayFail ? undefined : 'other engines change the same object repeatedly'
    default:
      return 'the specification says so'
  }
}
