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
  if (StorageFailure.is(failure) && failure.kind === 'closed') {
    return new HeadwaterError('unavailable', 'the storage is closed', { cause: failure })
  }
  const reason = StorageFailure.is(failure) ? failure.kind : 'unexpected'
  return new HeadwaterError('storage', `the storage failed (${reason})`, { cause: failure })
}

export function conflictError(): HeadwaterError {
  return new HeadwaterError(
    'transaction_conflict',
    'transaction conflict occurred – this is usually retriable',
  )
}

export function closedError(): HeadwaterError {
  return new HeadwaterError('unavailable', 'headwater is closed')
}
