import { HeadwaterError } from '../model/errors.ts'

/** Returns the error of the appends of a session that follow a failed one, which is the cause. */
export function discardedError(cause: unknown): HeadwaterError {
  const message = 'an earlier append of this session failed; this one was not made'
  return new HeadwaterError('append_discarded', message, { cause })
}

/** Returns the error of an open read whose stream was deleted. */
export function deletedUnderReadError(): HeadwaterError {
  return new HeadwaterError('stream_deleted', 'the stream was deleted')
}
