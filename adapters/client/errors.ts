import { ERROR_KINDS, type ErrorCode, type ErrorDetails, HeadwaterError } from '../../src/model/errors.ts'
import type { StreamTail } from '../../src/model/position.ts'
import type { ReadQuery } from '../../src/model/read-query.ts'
import { decodeError } from '../../src/wire/errors.ts'
import { Malformed } from '../../src/wire/json.ts'

/** A request that failed. */
export class Failure extends Error {
  /** The error for the caller, if the request is not sent again. */
  readonly error: HeadwaterError
  /** Whether sending the same request again may help. */
  readonly isTransient: boolean
  /** How long the server asks to wait, in milliseconds. */
  readonly retryAfterMs: number
  /** Whether an attempt before the last one may have had effects. */
  isRepeated = false

  constructor(error: HeadwaterError, isTransient = false, retryAfterMs = 0) {
    super(error.message)
    this.error = error
    this.isTransient = isTransient
    this.retryAfterMs = retryAfterMs
  }
}

/** The reason to end a request whose server sent nothing for too long: its connection may be dead. */
export class Silence extends Error {}

/** The server, or a proxy in front of it, does not speak HTTP/2. Nothing was sent. */
export class NoHttp2 extends Error {}

/** Returns the error of calls of a closed client. */
export function clientClosedError(): HeadwaterError {
  return new HeadwaterError('closed', 'the client is closed', { mayHaveEffects: false })
}

/** Returns the error with this value of `mayHaveEffects`. */
export function withEffects(error: HeadwaterError, mayHaveEffects: boolean): HeadwaterError {
  if (error.mayHaveEffects === mayHaveEffects) return error
  const details = { ...error, cause: error.cause, mayHaveEffects } as ErrorDetails
  return new HeadwaterError(error.code, error.message, details)
}

/** Settles as the work does, but rejects with the error of a {@link Failure}. */
export async function unwrapFailure<Result>(work: Promise<Result>): Promise<Result> {
  try {
    return await work
  } catch (failure) {
    if (!(failure instanceof Failure)) throw failure
    throw failure.isRepeated ? withEffects(failure.error, true) : failure.error
  }
}

/** Returns the error of a response that the protocol does not allow. */
export function unexpectedResponse(problem: string, mayHaveEffects: boolean): HeadwaterError {
  return new HeadwaterError('other', `unexpected response from the server: ${problem}`, { mayHaveEffects })
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
    return failureOfStatus(status ?? 500, isSafe, sent, retryAfterMs)
  }
  const { code, message, sentCode: _, ...details } = received
  const isKeyError = code === 'bad_header' && /encryption/i.test(message)
  const error = new HeadwaterError(isKeyError ? 'encryption_key_invalid' : code, message, {
    ...details,
    ...(isKeyError && { field: 'encryptionKey' }),
    ...(isSafe && { mayHaveEffects: false }),
    ...(retryAfterMs > 0 && { retryAfterMs }),
  })
  const isTransient = status === undefined || TRANSIENT.includes(status) || status === 409
  return new Failure(error, error.retryable && isTransient, retryAfterMs)
}

/**
 * The failure that a server has sent to a page as a success (docs/protocol.md "Expected outcomes"). Undefined
 * for a success.
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
function failureOfStatus(
  status: number,
  isSafe: boolean,
  sent: string | undefined,
  retryAfterMs: number,
): Failure {
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
  return new Failure(error, isTransient, retryAfterMs)
}

/** The failure of a reply that something between client and server seems to have sent. */
export function notOfTheProtocol(problem: string, mayHaveEffects: boolean): Failure {
  const message = `unexpected response, perhaps of a gateway: ${problem}`
  return new Failure(new HeadwaterError('unavailable', message, { mayHaveEffects }), true)
}

/**
 * The failure of a request that got no response, only a part of one, or one that the protocol does not allow.
 *
 * @param isSafe Whether the request changes nothing.
 */
export function connectionFailure(cause: unknown, isSafe: boolean): Failure {
  if (cause instanceof Failure) return cause
  if (cause instanceof Malformed || (HeadwaterError.is(cause) && cause.code === 'bad_frame')) {
    return new Failure(unexpectedResponse(cause.message, !isSafe))
  }
  if (HeadwaterError.is(cause)) {
    return new Failure(withEffects(cause, !isSafe && cause.mayHaveEffects), cause.retryable)
  }
  const mayHaveEffects = !isSafe && mayBeSent(cause)
  if (cause instanceof Silence) {
    return new Failure(new HeadwaterError('unavailable', cause.message, { mayHaveEffects }), true)
  }
  const { code, message } = connectionErrorOf(cause)
  const reason = typeof message === 'string' && message !== '' ? message : String(code ?? 'no response')
  const text = `cannot reach the server: ${reason.slice(0, 500)}`
  return new Failure(new HeadwaterError('unavailable', text, { mayHaveEffects, cause }), true)
}

/** The error of a connection, which `fetch` reports as the cause of another one. */
function connectionErrorOf(error: unknown): { readonly code?: unknown; readonly message?: unknown } {
  return Object((Object(error) as { cause?: unknown }).cause ?? error)
}

/** Codes of errors of Node's `fetch` and sockets that come before the first byte of a request. */
const NOT_CONNECTED = /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|UND_ERR_CONNECT_TIMEOUT)$/
const NOT_SECURED =
  /^(ERR_SSL_(WRONG_VERSION|PACKET_LENGTH)|UNABLE_TO_(GET|VERIFY)|(DEPTH_ZERO_)?SELF_SIGNED)_/

/** Whether a request that failed may have been sent. In browsers, errors have no codes. */
function mayBeSent(error: unknown): boolean {
  const code = String(connectionErrorOf(error).code)
  return !NOT_CONNECTED.test(code) && !NOT_SECURED.test(code)
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
