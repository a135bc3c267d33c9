import { rejection } from '../model/rejection.ts'

/** Returns the error of a rejected call, such as `400 bad_json`, or `accepted`. Rethrows any other error. */
export function outcomeOf(call: () => unknown): string {
  const error = rejection(call)
  return error === undefined ? 'accepted' : `${error.status} ${error.code}`
}
