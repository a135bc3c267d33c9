import { HeadwaterError } from '../../src/model/errors.ts'
import { LARGE_APPEND_RECORDS_MAX } from '../../src/model/limits.ts'
import { errorBody } from '../../src/wire/errors.ts'
import { BODY_LENGTH } from '../http/body.ts'
import type { Reply } from '../http/reply.ts'
import { DurableStreamsError, offsetOf } from './headers.ts'
import { APPEND_BYTES_MAX } from './messages.ts'

const CODES: Readonly<Record<number, string>> = {
  400: 'bad_request',
  404: 'stream_not_found',
  409: 'conflict',
  410: 'gone',
  413: 'too_large',
}

/** The reply to an append or a creation that is too large: to divide it would not be atomic. */
const TOO_LARGE = JSON.stringify({
  code: CODES[413],
  message:
    `a request has at most ${LARGE_APPEND_RECORDS_MAX} messages and ${APPEND_BYTES_MAX} bytes, ` +
    "and no more than the server's memory for appends; divide it into several",
})

/**
 * Returns the reply to a failed request; undefined for errors that all protocols report in the same way. A
 * deleted stream that has forks is 410 for all methods except `PUT`, for which it is 409.
 */
export function errorReplyOf(error: unknown, method: string): Reply | undefined {
  if (error instanceof DurableStreamsError) {
    const { status, message, headers } = error
    return reply(status, JSON.stringify({ code: CODES[status], message }), headers)
  }
  if (!HeadwaterError.is(error)) return undefined
  const status = statusOf(error, method)
  if (status === 413) return reply(413, TOO_LARGE)
  const { text } = errorBody(error)
  return status === undefined ? undefined : reply(status, text, headersOf(error))
}

/** The headers of a reply to a rejected append. */
function headersOf(error: HeadwaterError): Record<string, string> | undefined {
  switch (error.code) {
    case 'stream_closed':
      return { 'stream-closed': 'true', 'stream-next-offset': offsetOf(error.seqNum!) }
    case 'producer_fenced':
      return { 'producer-epoch': String(error.producerEpoch) }
    case 'producer_gap':
      return {
        'producer-expected-seq': String(error.expectedSeq),
        'producer-received-seq': String(error.receivedSeq),
      }
    default:
      return undefined
  }
}

function statusOf({ code, field, status }: HeadwaterError, method: string): number | undefined {
  switch (code) {
    case 'stream_deletion_pending':
      return method === 'PUT' ? 409 : 410
    case 'stream_deleted':
      return 404
    case 'history_trimmed':
      return 410
    case 'bad_proto':
      return field === BODY_LENGTH ? 413 : 400
    case 'invalid':
      // The other members of a record are never invalid here.
      return field === 'records' ? 413 : 400
    default:
      // Client errors must not be cached. 401 has headers of its own, and server errors are logged.
      return status > 401 && status < 500 ? status : undefined
  }
}

function reply(status: number, body: string, headers?: Readonly<Record<string, string>>): Reply {
  return {
    status,
    headers: { 'content-type': 'application/json', 'cache-control': 'no-store', ...headers },
    body,
  }
}
