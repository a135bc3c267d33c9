import { ERROR_KINDS, type ErrorCode, type ErrorDetails, HeadwaterError } from '../../src/model/errors.ts'
import type { StreamTail } from '../../src/model/position.ts'
import type { ReadQuery } from '../../src/model/read-query.ts'
import { decodeError } from '../../src/wire/errors.ts'
import { Malformed } from '../../src/wire/json.ts'

/** Returns the error of calls of a closed client. */
export function clientClosedError(): HeadwaterError {
  return new HeadwaterError('closed', 'the client is closed', { mayHaveEffects: false })
}

/** Returns the error with this value of `mayHaveEffects`. */
export function withEffects(error: HeadwaterError, mayHaveEffects: boolean): HeadwaterError {
  if (error.mayHaveEffects === mayHaveEffects) return error
  const { code, message, field, tail, fencingToken, seqNum, retryAfterMs, cause } = error
  const { producerEpoch, expectedSeq, receivedSeq, lastSeq, streamSeq } = error
  const numbers = { seqNum, retryAfterMs, producerEpoch, expectedSeq, receivedSeq, lastSeq }
  const details: Record<string, unknown> = { ...numbers, field, tail, fencingToken, streamSeq, cause }
  for (const name in details) if (details[name] === undefined) delete details[name]
  return new HeadwaterError(code, message, { ...details, mayHaveEffects } satisfies ErrorDetails)
}

/** A request that failed, and whether sending it again may help. */
export interface Failure {
  readonly error: HeadwaterError
  readonly isTransient: boolean
  /** How long the server asks to wait, in milliseconds. */
  readonly retryAfterMs: number
}

/** Returns the error of a response that the protocol does not allow. */
export function unexpectedResponse(
  problem: string,
  mayHaveEffects: boolean,
  cause?: unknown,
): HeadwaterError {
  return new HeadwaterError('other', `unexpected response from the server: ${problem}`, {
    mayHaveEffects,
    ...(cause !== undefined && { cause }),
  })
}

/** Returns what `decode` returns. Throws `other` if the response is malformed. */
export function decoded<Value>(mayHaveEffects: boolean, decode: () => Value): Value {
  try {
    return decode()
  } catch (error) {
    if (error instanceof Malformed) throw unexpectedResponse(error.message, mayHaveEffects)
    throw error
  }
}

/** Statuses after which the same request may succeed. */
const TRANSIENT: readonly number[] = [408, 429, 500, 502, 503, 504]

/**
 * The failure that an error response, a terminal frame or an `error` event reports.
 *
 * @param status The HTTP status; undefined for an `error` event.
 * @param isSafe Whether the request changes nothing.
 * @param retryAfterMs How long the server asks to wait; 0 if it does not ask.
 */
export function failureOf(
  status: number | undefined,
  text: string,
  isSafe: boolean,
  retryAfterMs = 0,
): Failure {
  const received = text === '' ? undefined : decodeError(text)
  if (received?.code === undefined) {
    const sent = received && `${received.message} (${received.sentCode})`
    return ofStatus(status ?? 500, isSafe, sent, retryAfterMs)
  }
  const { code, message, sentCode: _, ...details } = received
  const isKeyError = code === 'bad_header' && /encryption/i.test(message)
  const error = new HeadwaterError(isKeyError ? 'encryption_key_invalid' : code, message, {
    ...details,
    ...(isKeyError && { field: 'encryptionKey' }),
    ...(isSafe && { mayHaveEffects: false }),
    ...(retryAfterMs > 0 && { retryAfterMs }),
  })
  const isTransient =
    error.retryable && (status === undefined || TRANSIENT.includes(status) || status === 409)
  return { error, isTransient, retryAfterMs }
}

/**
 * The failure of a reply that the server has sent to a page as a success, if something in between hides the
 * header that has the status, for example a gateway with CORS headers of its own. Undefined for a success.
 *
 * @param isSafe Whether the request changes nothing.
 * @param mayBeTail Whether a tail is a success of the request. It looks like the failure of a read beyond it.
 */
export function hiddenFailureOf(text: string, isSafe: boolean, mayBeTail: boolean): Failure | undefined {
  const received = decodeError(text)
  if (received === undefined || (mayBeTail && received.code === 'range_not_satisfiable')) return undefined
  // The server has one code for these replies that the library does not have: `not_found`, of unknown paths.
  const status = received.code === undefined ? 404 : ERROR_KINDS[received.code].status
  return failureOf(status, text, isSafe)
}

const CODES_BY_STATUS: Readonly<Record<number, ErrorCode>> = {
  401: 'authn',
  403: 'permission_denied',
  422: 'invalid',
  429: 'rate_limited',
}

/** Servers with codes of a later version, and gateways, whose replies have no error of the protocol. */
function ofStatus(status: number, isSafe: boolean, sent: string | undefined, retryAfterMs: number): Failure {
  const mayHaveEffects = !isSafe && (status >= 500 || status === 408)
  // Only the server can say that a token is not good: a gateway asks for something else, such as a login.
  if (sent === undefined && (status === 401 || status === 403)) {
    return notOfTheProtocol(`status ${status} without an error of the protocol`, mayHaveEffects)
  }
  const isTransient = TRANSIENT.includes(status)
  const code = CODES_BY_STATUS[status] ?? (isTransient ? 'unavailable' : 'other')
  const said = sent === undefined ? '' : `: ${sent}`
  const hint = status >= 300 && status < 405 && code === 'other' ? '; check `url`' : ''
  const error = new HeadwaterError(code, `the server responded with status ${status}${said}${hint}`, {
    mayHaveEffects,
    ...(retryAfterMs > 0 && { retryAfterMs }),
  })
  return { error, isTransient, retryAfterMs }
}

/** The failure of a reply that something between client and server seems to have sent. */
export function notOfTheProtocol(problem: string, mayHaveEffects: boolean): Failure {
  const message = `unexpected response, perhaps of a gateway: ${problem}`
  return {
    error: new HeadwaterError('unavailable', message, { mayHaveEffects }),
    isTransient: true,
    retryAfterMs: 0,
  }
}

/**
 * The failure of a request that got no response, or only a part of one.
 *
 * @param mayHaveEffects Whether the request may have changed something.
 */
export function connectionFailure(cause: unknown, mayHaveEffects: boolean): Failure {
  if (HeadwaterError.is(cause)) {
    return {
      error: withEffects(cause, mayHaveEffects && cause.mayHaveEffects),
      isTransient: cause.retryable,
      retryAfterMs: 0,
    }
  }
  const { code, message } = connectionErrorOf(cause)
  const reason = typeof message === 'string' && message !== '' ? message : String(code ?? 'no response')
  const error = new HeadwaterError('unavailable', `cannot reach the server: ${reason.slice(0, 500)}`, {
    mayHaveEffects,
    cause,
  })
  return { error, isTransient: true, retryAfterMs: 0 }
}

/** The error of a connection, which `fetch` reports as the cause of another one. */
export function connectionErrorOf(error: unknown): { readonly code?: unknown; readonly message?: unknown } {
  return Object((Object(error) as { cause?: unknown }).cause ?? error)
}

/** Errors of Node's `fetch` and sockets that come before the first byte of a request. */
const NOT_SENT: readonly unknown[] = [
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'UND_ERR_CONNECT_TIMEOUT',
  'ERR_SSL_WRONG_VERSION_NUMBER',
  'ERR_SSL_PACKET_LENGTH_TOO_LONG',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]

/** Whether a request that failed may have been sent. In browsers, errors have no codes. */
export function mayBeSent(error: unknown): boolean {
  return HeadwaterError.is(error) || !NOT_SENT.includes(connectionErrorOf(error).code)
}

/**
 * The tail of the stream if the error says that there is nothing to read, which the library does not treat
 * as an error; undefined for other errors, and for a start beyond the tail.
 */
export function emptyAt({ seqNum, clamp }: ReadQuery, error: unknown): StreamTail | undefined {
  if (!HeadwaterError.is(error) || error.code !== 'range_not_satisfiable') return undefined
  const { tail } = error
  if (tail === undefined || (seqNum !== undefined && seqNum > tail.seqNum && clamp !== true)) return undefined
  return tail
}

/** The server, or a proxy in front of it, does not speak HTTP/2. Nothing was sent. */
export class NotDuplex extends Error {}
