import { type ErrorCode, HeadwaterError } from '../model/errors.ts'

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
