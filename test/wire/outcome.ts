import { HeadwaterError } from '../../src/model/errors.ts'

/** Returns the error of a rejected call, such as `400 bad_json`, or `accepted`. Rethrows any other error. */
export function outcomeOf(call: () => unknown): string {
  const error = rejection(call)
  return error === undefined ? 'accepted' : `${error.status} ${error.code}`
}

export function rejection(call: () => unknown): HeadwaterError | undefined {
  try {
    call()
    return undefined
  } catch (error) {
    if (HeadwaterError.is(error)) return error
    throw error
  }
}
