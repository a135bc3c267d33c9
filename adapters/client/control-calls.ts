import { type CallOptions, signalOf } from '../../src/api/call-options.ts'
import { utf8 } from '../../src/model/bytes.ts'
import { requestTokenProblem } from '../../src/model/control-names.ts'
import { assertValid, invalid } from '../../src/model/errors.ts'
import type { Provisioned, ProvisionResult } from '../../src/model/info.ts'
import { LIST_QUERY, type ListQuery } from '../../src/model/info.ts'
import { assertMembers, type Members } from '../../src/model/validation.ts'
import { idFrom, secureRandom } from '../../src/runtime/ids.ts'
import { vendorHeader } from '../../src/wire/headers.ts'
import { oneOf } from '../../src/wire/json.ts'
import { listQueryParts, queryText } from '../../src/wire/query.ts'
import type { CallReply, CallSender } from './call.ts'

/** Returns the signal of a call. Throws if its options are invalid, and if it or the client has ended. */
export function begin(
  { closing }: CallSender,
  options: CallOptions | undefined,
  members?: Members,
): AbortSignal | undefined {
  const signal = signalOf(options, members)
  signal?.throwIfAborted()
  closing.throwIfAborted()
  return signal
}

/** The header that identifies a creation, so that a repetition has no further effect. */
export interface Creation {
  /** The request token as the value of a header, whose characters stand for the bytes of UTF-8. */
  readonly header: string
  /** Whether only this call has the token. */
  readonly isOwn: boolean
}

/** The request token of a creation: the given one, or a random one. Throws `invalid`. */
export function creationOf(requestToken: string | undefined): Creation {
  if (requestToken === undefined) return { header: idFrom(secureRandom), isOwn: true }
  assertValid(requestTokenProblem(requestToken), 'requestToken')
  if (/[\0\r\n]/.test(requestToken) || requestToken.trim() !== requestToken) {
    throw invalid('`requestToken` must have no line breaks and no spaces at its ends', 'requestToken')
  }
  return { header: String.fromCharCode(...utf8(requestToken)), isOwn: false }
}

/** The result of a creation. A repetition of an own creation finds what the first attempt created. */
export function provisionedOf<Info>(info: Info, reply: CallReply, creation?: Creation): Provisioned<Info> {
  const headers = { header: (name: string) => reply.headers.get(name) ?? undefined }
  const sent = vendorHeader(headers, 'provision-result')
  // Pages of other origins do not see the header of every server.
  const result = sent === undefined ? 'created' : resultOf(sent, 'provision-result')
  return { result: creation?.isOwn === true ? 'created' : result, info }
}

const resultOf = oneOf<ProvisionResult>(['created', 'updated', 'noop'])

/** The query of a list. Throws `invalid`, also for what `problemOf` finds. */
export function listSearch(
  query: ListQuery,
  problemOf: (text: string, role: 'prefix' | 'start-after') => string | undefined,
): string {
  assertMembers(query, LIST_QUERY, 'query')
  assertValid(problemOf(query.prefix ?? '', 'prefix'), 'prefix')
  assertValid(problemOf(query.startAfter ?? '', 'start-after'), 'startAfter')
  return queryText(listQueryParts(query))
}
