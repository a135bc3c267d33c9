import { HeadwaterError } from '../../src/model/errors.ts'

/** What a call is refused with, undefined when it is not. Any other error is thrown on. */
export function refusal(call: () => unknown): HeadwaterError | undefined {
  try {
    call()
    return undefined
  } catch (error) {
    if (HeadwaterError.is(error)) return error
    throw error
  }
}

/** The message of a refusal with 422 `invalid`; undefined when the call is not refused. */
export function invalidMessage(call: () => unknown): string | undefined {
  const error = refusal(call)
  if (error !== undefined && error.code !== 'invalid') throw error
  return error?.message
}
