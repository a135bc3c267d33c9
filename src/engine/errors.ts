import { HeadwaterError } from '../model/errors.ts'
import type { StreamRef } from '../model/names.ts'
import type { BasinDocument } from '../storage/documents.ts'
import { StorageFailure } from '../storage/errors.ts'

/** Hides the reason from the message: it may contain paths, which clients of a server must not see. */
export function fromStorage(failure: unknown, message?: string): HeadwaterError {
  if (HeadwaterError.is(failure)) return failure
  if (!StorageFailure.is(failure)) {
    return new HeadwaterError('storage', 'the storage failed (unexpected)', { cause: failure })
  }
  const { kind, nothingWritten } = failure
  const details = { mayHaveEffects: !nothingWritten, cause: failure }
  if (kind === 'closed') return new HeadwaterError('closed', 'the storage is closed', details)
  if (kind === 'upgraded') {
    const remedy = 'reload the page, or update the program'
    const upgraded = `a newer version of headwater has upgraded the storage; ${remedy}`
    return new HeadwaterError('storage_upgraded', upgraded, details)
  }
  const code = kind === 'quota' ? 'storage_full' : 'storage'
  const reason = kind === 'quota' ? 'is full; trim or delete streams, or add space' : `failed (${kind})`
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
  return new HeadwaterError('closed', 'headwater is closed')
}

/** Returns the error of an append to a deleted stream: nothing was written. */
export function deletedError(): HeadwaterError {
  return new HeadwaterError('stream_deletion_pending', 'stream deletion pending')
}

/** Returns the error of the sessions of a stream of which the storage has lost records. */
export function lostRecordsError(endSeqNum: number): HeadwaterError {
  const message = `the storage has lost records before ${endSeqNum} that it had confirmed; read them again`
  return new HeadwaterError('storage', message, { mayHaveEffects: false })
}

/** Returns the error of an append that failed because of another one and wrote nothing itself. */
export function withoutEffects({ code, message, cause }: HeadwaterError): HeadwaterError {
  return new HeadwaterError(code, message, { mayHaveEffects: false, cause })
}

/** Returns the decoded bytes. Throws `storage` if decoding fails. */
export function decodeStored<Result>(decode: () => Result): Result {
  try {
    return decode()
  } catch (cause) {
    throw new HeadwaterError('storage', 'a stored block is damaged', { mayHaveEffects: false, cause })
  }
}

export function basinNotFound(name: string): HeadwaterError {
  return new HeadwaterError('basin_not_found', `basin \`${name}\` not found`)
}

export function assertNotDeleting({ name, deletedAt }: BasinDocument): void {
  if (deletedAt === null) return
  throw new HeadwaterError('basin_deletion_pending', `basin \`${name}\` is being deleted`)
}

export function streamNotFound({ basin, stream, shownAs = stream }: StreamRef): HeadwaterError {
  return new HeadwaterError('stream_not_found', `stream \`${shownAs}\` in basin \`${basin}\` not found`)
}

/** `stream_not_found` for the first append of a user who expected that it creates the stream. */
export function noStreamToAppendTo(ref: StreamRef): HeadwaterError {
  const field = 'createStreamOnAppend'
  const { message } = streamNotFound(ref)
  const remedy = `create it, or set \`${field}\` of the basin, so that appends create streams`
  return new HeadwaterError('stream_not_found', `${message}; ${remedy}`, { field })
}

export function streamExists({ basin, stream, shownAs = stream }: StreamRef): HeadwaterError {
  const message = `stream \`${shownAs}\` in basin \`${basin}\` already exists`
  return new HeadwaterError('resource_already_exists', message)
}

/** The records below `seqNum` that a fork needs are trimmed or have expired. */
export function forkTrimmed({ stream, shownAs = stream }: StreamRef, seqNum: number): HeadwaterError {
  const message = `stream \`${shownAs}\` has lost records below ${seqNum} that the fork needs`
  return new HeadwaterError('history_trimmed', message, { seqNum })
}

export function nameReserved(name: string): HeadwaterError {
  const message = `stream \`${name}\` was deleted; its name stays reserved until its forks are deleted`
  return new HeadwaterError('stream_deletion_pending', message)
}

/** The message is the same whether the resource exists or not. */
export function permissionDenied(message = 'the access token does not permit this'): HeadwaterError {
  return new HeadwaterError('permission_denied', message)
}

/** The message is the same for malformed, unknown, revoked and expired tokens. */
export function authnError(): HeadwaterError {
  return new HeadwaterError('authn', 'a valid access token is required')
}

export function tokenEndedError(): HeadwaterError {
  return new HeadwaterError('authn', 'the access token was revoked or has expired')
}
