import { HeadwaterError } from '../../src/model/errors.ts'
import { errorBody } from '../../src/wire/error-body.ts'
import { BODY_LENGTH } from '../http/body.ts'
import type { Reply } from '../http/reply.ts'

/** A rejection of the protocol that no error of the engine has. */
export class DurableStreamsError extends Error {
  readonly status: number
  readonly headers: Readonly<Record<string, string>> | undefined

  constructor(status: number, message: string, headers?: Readonly<Record<string, string>>) {
    super(message)
    this.status = status
    this.headers = headers
  }
}

const CODES: Readonly<Record<number, string>> = {
  400: 'bad_request',
  404: 'stream_not_found',
  409: 'conflict',
  410: 'gone',
  413: 'too_large',
}

/**
 * The reply to a failed request. Undefined for errors that every protocol reports alike. A deleted stream
 * with forks is gone for all methods but `PUT`, which it conflicts with.
 */
export function errorReplyOf(error: unknown, method: string): Reply | undefined {
  if (error instanceof DurableStreamsError) {
    const { status, message, headers } = error
    return reply(status, JSON.stringify({ code: CODES[status], message }), headers)
  }
  if (!HeadwaterError.is(error)) return undefined
  const { text } = errorBody(error)
  const status = statusOf(error, method)
  return status === undefined ? undefined : reply(status, text)
}

function statusOf({ code, field }: HeadwaterError, method: string): number | undefined {
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
      return undefined
  }
}

function reply(status: number, body: string, headers?: Readonly<Record<string, string>>): Reply {
  return {
    status,
    headers: { 'content-type': 'application/json', 'cache-control': 'no-store', ...headers },
    body,
  }
}
