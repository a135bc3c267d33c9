import { HeadwaterError } from '../model/errors.ts'
import { StorageFailure } from '../storage/errors.ts'

/** Passes a storage's answer on, a {@link StorageFailure} as the `storage` error (or `unavailable` when it is closed). */
export async function storageError<Result>(answer: Promise<Result>): Promise<Result> {
  try {
    return await answer
  } catch (error) {
    throw StorageFailure.is(error) ? fromStorage(error) : error
  }
}

export function fromStorage(failure: unknown): HeadwaterError {
  if (HeadwaterError.is(failure)) return failure
  if (StorageFailure.is(failure) && failure.kind === 'closed') {
    return new HeadwaterError('unavailable', 'the storage is closed', { cause: failure })
  }
  const reason = StorageFailure.is(failure) ? failure.kind : 'unexpected'
  return new HeadwaterError('storage', `the storage failed (${reason})`, { cause: failure })
}

/** Says nothing of the resource: whether it exists is not for everybody. */
export function permissionDenied(message = 'the access token does not permit this'): HeadwaterError {
  return new HeadwaterError('permission_denied', message)
}

/** Too many others change the same thing. */
export function conflictError(): HeadwaterError {
  return new HeadwaterError(
    'transaction_conflict',
    'transaction conflict occurred – this is usually retriable',
  )
}

export function closedError(): HeadwaterError {
  return new HeadwaterError('unavailable', 'headwater is closed')
}

/** For an append to a stream that is gone: nothing of it was written (wire-behaviour.md 3.9). */
export function deletedError(): HeadwaterError {
  return new HeadwaterError('stream_deletion_pending', 'stream deletion pending')
}

/** For a read that was open when its stream was deleted (wire-behaviour.md 5.10). */
export function deletedUnderReadError(): HeadwaterError {
  return new HeadwaterError('unavailable', 'the stream was deleted')
}

/** For what was behind the failed append of a session. */
export function discardedError(): HeadwaterError {
  return new HeadwaterError('other', 'an earlier append of this session failed; this one was not made')
}
