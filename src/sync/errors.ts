import { type ErrorCode, HeadwaterError } from '../model/errors.ts'

/** Returns the code of a `HeadwaterError`, and undefined for any other value. */
export function codeOf(error: unknown): ErrorCode | undefined {
  return HeadwaterError.is(error) ? error.code : undefined
}

/** Whether the error says that the basin or the stream does not exist. */
export function isStreamMissing(error: unknown): boolean {
  const code = codeOf(error)
  return code === 'stream_not_found' || code === 'basin_not_found'
}

/** Returns the error itself if it is a `HeadwaterError`, else `other` with the error as the cause. */
export function asHeadwaterError(error: unknown): HeadwaterError {
  if (HeadwaterError.is(error)) return error
  return new HeadwaterError('other', String((error as { message?: unknown })?.message ?? error), {
    cause: error,
  })
}
