import { HeadwaterError } from '../../src/model/errors.ts'

/** Returns the error of a rejected call, undefined if it succeeds. Rethrows any other error. */
export function rejection(call: () => unknown): HeadwaterError | undefined {
  try {
    call()
    return undefined
  } catch (error) {
    if (HeadwaterError.is(error)) return error
    throw error
  }
}

/** Returns the message of a 422 `invalid`; undefined if the call succeeds. */
export function invalidMessage(call: () => unknown): string | undefined {
  const error = rejection(call)
  if (error !== undefined && error.code !== 'invalid') throw error
  return error?.message
}
