import { HeadwaterError } from '../model/errors.ts'
import type { StreamRef } from './context.ts'

export function basinDeletionPending(name: string): HeadwaterError {
  return new HeadwaterError('basin_deletion_pending', `basin \`${name}\` is being deleted`)
}

export function streamNotFound({ basin, stream, shownAs = stream }: StreamRef): HeadwaterError {
  return new HeadwaterError('stream_not_found', `stream \`${shownAs}\` in basin \`${basin}\` not found`)
}

export function streamExists({ basin, stream, shownAs = stream }: StreamRef): HeadwaterError {
  return new HeadwaterError(
    'resource_already_exists',
    `stream \`${shownAs}\` in basin \`${basin}\` already exists`,
  )
}
