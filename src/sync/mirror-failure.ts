import type { HeadwaterError } from '../model/errors.ts'
import type { StopReason } from './mirror-state.ts'

/** The outcome of a failure: the mirror tries again, or stops for a reason. */
export type FailureOutcome = 'retry' | StopReason

/**
 * Decides about a failure of the remote stream or of the local storage. `hasCopy` tells whether the local
 * copy has records: a stream without a copy may be created later, and one with a copy was deleted.
 */
export function failureOutcome({ code, retryable }: HeadwaterError, hasCopy: boolean): FailureOutcome {
  switch (code) {
    case 'authn':
    case 'permission_denied':
      return 'denied'
    case 'stream_not_found':
    case 'basin_not_found':
    case 'basin_deletion_pending':
      return hasCopy ? 'missing' : 'retry'
    case 'range_not_satisfiable':
      return hasCopy ? 'replaced' : 'retry'
    // The next attempt finds the stream missing, or another one.
    case 'stream_deleted':
    // A server that shuts down.
    case 'closed':
      return 'retry'
    default:
      return retryable ? 'retry' : 'failed'
  }
}
