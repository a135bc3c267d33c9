import { HeadwaterError } from '../../model/errors.ts'
import type { Storage, StorageContext, StorageSession } from '../../storage/contract.ts'
import { StorageConflict, StorageFailure } from '../../storage/errors.ts'

/**
 * Opens the storage. Calls of the session reject with {@link HeadwaterError}: `storage` for a failure,
 * `unavailable` after `close`. Conflicts pass through.
 */
export async function acquireSession(storage: Storage, context: StorageContext): Promise<StorageSession> {
  try {
    return mapStorageErrors(await storage.open(context))
  } catch (error) {
    if (!StorageFailure.is(error)) throw error
    throw fromStorage(error, `the storage cannot be opened: ${error.message}`)
  }
}

function mapStorageErrors(session: StorageSession): StorageSession {
  const { allocate, check, isFull, electForBackgroundWork, isExclusive } = session
  return {
    get: (collection, key) => session.get(collection, key).catch(throwMapped),
    list: (collection, range) => session.list(collection, range).catch(throwMapped),
    commit: (changes) => session.commit(changes).catch(throwMapped),
    head: (logId) => session.head(logId).catch(throwMapped),
    // Its only caller, the append pipeline, maps errors: one promise less for every append.
    append: session.append.bind(session),
    read: (logId, range) => session.read(logId, range).catch(throwMapped),
    reclaim: (limits) => session.reclaim(limits).catch(throwMapped),
    measure: (logIds) => session.measure(logIds).catch(throwMapped),
    close: () => session.close().catch(throwMapped),
    ...(allocate && { allocate: allocate.bind(session) }),
    ...(check && { check: () => check.call(session).catch(throwMapped) }),
    ...(isFull && { isFull: isFull.bind(session) }),
    ...(isExclusive && { isExclusive: isExclusive.bind(session) }),
    ...(electForBackgroundWork && { electForBackgroundWork: electForBackgroundWork.bind(session) }),
  }
}

function throwMapped(failure: unknown): never {
  throw StorageConflict.is(failure) ? failure : fromStorage(failure)
}

/** Without the reason in the message: it may contain paths, which clients of a server must not see. */
export function fromStorage(failure: unknown, message?: string): HeadwaterError {
  if (HeadwaterError.is(failure)) return failure
  if (!StorageFailure.is(failure)) {
    return new HeadwaterError('storage', 'the storage failed (unexpected)', { cause: failure })
  }
  const { kind, nothingWritten } = failure
  const details = { mayHaveEffects: !nothingWritten, cause: failure }
  if (kind === 'closed') return new HeadwaterError('unavailable', 'the storage is closed', details)
  const code = kind === 'quota' ? 'storage_full' : 'storage'
  const reason = kind === 'quota' ? 'is full; trim or delete streams' : `failed (${kind})`
  return new HeadwaterError(code, message ?? `the storage ${reason}`, details)
}

/** Too many concurrent changes of the same object. */
export function conflictError(): HeadwaterError {
  return new HeadwaterError(
    'transaction_conflict',
    'transaction conflict occurred – this is usually retriable',
  )
}

export function closedError(): HeadwaterError {
  return new HeadwaterError('unavailable', 'headwater is closed', { mayHaveEffects: false })
}

/** For an append to a deleted stream: nothing was written. */
export function deletedError(): HeadwaterError {
  return new HeadwaterError('stream_deletion_pending', 'stream deletion pending')
}

/** For a read whose stream is deleted while it is open. */
export function deletedUnderReadError(): HeadwaterError {
  return new HeadwaterError('unavailable', 'the stream was deleted')
}

/** For the appends of a session that follow a failed one. */
export function discardedError(): HeadwaterError {
  return new HeadwaterError('other', 'an earlier append of this session failed; this one was not made')
}

/** Returns the decoded bytes. Throws `storage` if decoding fails. */
export function decodeOrThrowCorrupt<Result>(decode: () => Result): Result {
  try {
    return decode()
  } catch (cause) {
    throw new HeadwaterError('storage', 'a stored block is damaged', { mayHaveEffects: false, cause })
  }
}
