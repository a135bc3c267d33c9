import { type ErrorCode, HeadwaterError } from '../model/errors.ts'
import type { StopReason } from './mirror.ts'

/** What failures mean for sync, and how long it waits after them. */

const FIRST_MS = 500
const MOST_MS = 30_000
/** The longest wait that a server can ask for. */
const ASKED_MS_MAX = 600_000

/**
 * Milliseconds to wait before the next attempt after a number of failures in succession, at least 1. It
 * doubles from 0.5 to 30 seconds, of which the half is random, so that devices that lost the same server do
 * not come back all at once. What the server asks for, up to 10 minutes, comes in addition. `random` is in
 * [0, 1).
 */
export function backOffMs(failures: number, random: number, askedMs = 0): number {
  const most = Math.min(FIRST_MS * 2 ** (failures - 1), MOST_MS)
  return Math.round((most * (1 + random)) / 2 + Math.min(askedMs, ASKED_MS_MAX))
}

/** Returns the code of a `HeadwaterError`, and undefined for any other value. */
export function codeOf(error: unknown): ErrorCode | undefined {
  return HeadwaterError.is(error) ? error.code : undefined
}

/** Returns the error itself if it is a `HeadwaterError`, else `other` with the error as the cause. */
export function asHeadwaterError(error: unknown): HeadwaterError {
  if (HeadwaterError.is(error)) return error
  return new HeadwaterError('other', String((error as { message?: unknown })?.message ?? error), {
    cause: error,
  })
}

/**
 * Decides whether a mirror tries again after a failure of the remote stream or of the local storage, or
 * stops. `hasCopy` tells whether the local copy has records: a stream without a copy may be created later,
 * and one with a copy was deleted.
 */
export function mirrorOutcome({ code, retryable }: HeadwaterError, hasCopy: boolean): 'retry' | StopReason {
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

/**
 * What the failure of an attempt to send a batch means:
 * - `conflict`: the tail is another one
 * - `forgotten`: the server knows another state of the producer, or none
 * - `unsupported`: the server takes no producer
 * - `refused`: the server does not take these records
 * - `stopped`: only the app can continue
 * - `retry`: anything else, as an expired token, which is renewed, or a missing stream, which is created
 */
type SendOutcome = 'conflict' | 'forgotten' | 'unsupported' | 'refused' | 'stopped' | 'retry'

const OUTCOMES: { readonly [Code in ErrorCode]?: SendOutcome } = {
  seq_num_mismatch: 'conflict',
  already_appended: 'forgotten',
  producer_gap: 'forgotten',
  producer_fenced: 'forgotten',
  unsupported: 'unsupported',
  too_many_producers: 'unsupported',
  permission_denied: 'refused',
  // The client was closed, or has no valid key.
  closed: 'stopped',
  encryption_key_invalid: 'stopped',
  authn: 'retry',
  stream_not_found: 'retry',
  basin_not_found: 'retry',
  basin_deletion_pending: 'retry',
  stream_deletion_pending: 'retry',
  stream_deleted: 'retry',
}

/** Decides about the failure of an attempt to send a batch. */
export function sendOutcome({ code, retryable }: HeadwaterError): SendOutcome {
  return OUTCOMES[code] ?? (retryable ? 'retry' : 'refused')
}
