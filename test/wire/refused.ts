import { HeadwaterError } from '../../src/model/errors.ts'

/** What a call is refused with: `400 bad_json`; `accepted` when it is not refused. Any other error is thrown on. */
export function refused(call: () => unknown): string {
  const error = refusal(call)
  return error === undefined ? 'accepted' : `${error.status} ${error.code}`
}

export function refusal(call: () => unknown): HeadwaterError | undefined {
  try {
    call()
    return undefined
  } catch (error) {
    if (HeadwaterError.is(error)) return error
    throw error
  }
}
