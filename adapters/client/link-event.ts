import { deletedUnderReadError } from '../../src/api/errors.ts'
import type { ReceivedBatch } from '../../src/storage/record-batch.ts'
import type { Failure } from './errors.ts'

/** A message to a read session: records, or a heartbeat without records. */
export interface LinkEvent {
  readonly received: ReceivedBatch
  /** The time of a heartbeat by the clock of the server, if it is known. */
  readonly sentAt: number | undefined
  /** Whether the server is about to stop, and the client should continue over another connection. */
  readonly advisesReconnect?: boolean | undefined
}

/** A connection that failed, or was not opened. */
export class LinkFailure extends Error {
  readonly failure: Failure

  constructor(failure: Failure) {
    super(failure.error.message)
    this.failure = failure
  }
}

/** How a server ends a session whose stream is deleted: the protocol has no code for it. */
const DELETED = /stream was deleted/

/** The failure at the end of a session. */
export function endOf(failure: Failure): Failure {
  const { code, message } = failure.error
  if (code !== 'unavailable' || !DELETED.test(message)) return failure
  return { error: deletedUnderReadError(), isTransient: false, retryAfterMs: 0 }
}
