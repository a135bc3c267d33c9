import { HeadwaterError } from '../../model/errors.ts'
import type { StreamRef } from '../../model/names.ts'
import type { BasinDocument } from '../../storage/documents.ts'

export function basinNotFound(name: string): HeadwaterError {
  return new HeadwaterError('basin_not_found', `basin \`${name}\` not found`)
}

/** Throws `basin_deletion_pending` if the basin is being deleted. */
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
