import type { HeadwaterError } from '../model/errors.ts'
import type { OutboxEntry } from './outbox-log.ts'
import type { SenderState } from './outbox-plan.ts'

/**
 * The state of an outbox:
 * - `idle`: there is nothing to send, another tab sends, or the mirror of the copy is stopped
 * - `sending`: records are being sent
 * - `offline`: it tries again at `nextAttemptAt`, in milliseconds since the Unix epoch; `error` says why
 * - `stopped`: it cannot send, for a reason that a retry does not resolve, such as a missing key
 * - `closed`: the outbox was closed
 */
export type OutboxStatus = SenderState | { readonly kind: 'closed' }

/** A parked batch: the server refused it, may have it, or had it in a stream that was deleted since. */
export interface FailedAppend {
  /** The number with which `retry` and `discard` name the batch. */
  readonly number: number
  /** The reason why it was parked. */
  readonly error: HeadwaterError
  /** The records, as they were appended. Their `seqNum` is their number in the outbox. */
  readonly records: OutboxEntry['records']
}
