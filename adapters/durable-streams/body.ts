import type { MaybePromise } from '../../src/runtime/maybe-promise.ts'
import { wholeBody } from '../http/body.ts'
import type { ApiRequest } from '../http/request.ts'

/** Reads the body of a request: its errors become 400, and 413 if it is too long. */
export function bodyOf(request: ApiRequest): MaybePromise<Uint8Array> {
  return wholeBody(request, 'bad_proto')
}
