import { HeadwaterError, type SequencedRecord } from '../../src/index.ts'
import { utf8 } from '../../src/model/bytes.ts'
import { FrameDecoder } from '../../src/wire/frame.ts'
import { messageOf } from '../../src/wire/frame-compression.ts'
import { integerOf, objectOf, optional, required, stringOf } from '../../src/wire/json-members.ts'
import { type JsonObject, readJson, readJsonText } from '../../src/wire/json-reader.ts'
import { HEADER_PREFIXES, mediaKind, sessionContentType } from '../../src/wire/media-type.ts'
import { vendorHeaderName } from '../../src/wire/vendor-headers.ts'
import { TimedRequest } from '../transfer/timed-request.ts'
import { connectionFailure, schemeHint } from './connection-failure.ts'
import type { CliContext } from './context.ts'
import { CliError, ConnectionError, printable, ServiceError } from './errors.ts'

const TOO_LONG = 'its body is too long'
const NOT_SPECIFIED = 'its body is not what the API specifies'

export interface ClientOptions {
  /** Of a server, or the handler of an engine in this process. */
  readonly fetch: CliContext['fetch']
  /** Without `/v1` and without a trailing slash. */
  readonly url: string
  /** Stands for the URL in messages, because the URL may contain a secret. */
  readonly name: string
  readonly token?: string | undefined
  /** Of encrypted streams, in base64. */
  readonly encryptionKey?: string | undefined
  readonly clock: CliContext['clock']
  /** Ends requests in flight; they reject with its reason. */
  readonly signal: AbortSignal
}

export interface Call {
  readonly method: 'GET' | 'PUT' | 'POST' | 'PATCH' | 'DELETE'
  /** After `/v1`, with the query. */
  readonly path: string
  /** The basin of a stream. */
  readonly basin?: string | undefined
  readonly type?: 'application/json' | 'application/protobuf'
  readonly body?: string | Uint8Array
}

/**
 * The HTTP API of a server or of an engine in this process. No request is repeated that may have taken
 * effect. Requests reject with {@link ServiceError} for an error response, and with {@link CliError} without
 * data for 30 s and for any other response.
 */
export class Client {
  readonly #options: ClientOptions
  #hasResponded = false
  /** Of session requests: those that the server may accept. */
  #headerPrefixes = HEADER_PREFIXES

  constructor(options: ClientOptions) {
    this.#options = options
  }

  /** Aborts when the command is stopped. */
  get signal(): AbortSignal {
    return this.#options.signal
  }

  get now(): number {
    return this.#options.clock.now()
  }

  /** Resolves to the text of a JSON response. It is not validated. */
  async text(call: Call): Promise<string> {
    const { body } = await this.#bytes(call)
    return new TextDecoder().decode(body)
  }

  /** Resolves to a decoded JSON response. */
  async json<Value>(call: Call, decode: (object: JsonObject) => Value): Promise<Value> {
    const { body } = await this.#bytes(call)
    try {
      return decode(objectOf(readJson(body), 'body'))
    } catch (error) {
      if (!HeadwaterError.is(error)) throw error
      throw undecided(this.#unexpected(NOT_SPECIFIED), call.method)
    }
  }

  /** Sends a request whose response matters only if it is an error. */
  async send(call: Call): Promise<void> {
    await this.#bytes(call)
  }

  /**
   * Reads records in a session. Each batch has 1 to 1,000 records.
   *
   * @param path Of the stream, with the query.
   * @param onOpen Called when the server has accepted the read.
   */
  async *read(basin: string, path: string, onOpen?: () => void): AsyncGenerator<readonly SequencedRecord[]> {
    const { recordsOf } = await import('../transfer/responses.ts')
    const decode = (message: Uint8Array) => recordsOf(message, 'read')
    for await (const records of this.session({ method: 'GET', path, basin }, decode, onOpen)) {
      if (records.length > 0) yield records
    }
  }

  /**
   * Sends a session request, whose body is complete, and yields the messages of the response.
   *
   * @param decode Throws `HeadwaterError` for a message that the API does not specify.
   * @param onOpen Called when the server has accepted the request.
   */
  async *session<Message>(
    call: Call,
    decode: (message: Uint8Array) => Message,
    onOpen?: () => void,
  ): AsyncGenerator<Message> {
    const request = new TimedRequest(this.#options)
    try {
      const response = await this.#openSession(call, request)
      onOpen?.()
      const frames = new FrameDecoder()
      for await (const chunk of request.chunks(response)) {
        for (const frame of frames.decode(chunk)) {
          if (frame.kind === 'terminal') {
            const error = this.#errorOf(frame.status, utf8(frame.body))
            // A server that closes, or a token that is revoked, may have stored inputs without their acks.
            const isUndecided = frame.status >= 500 || frame.status === 401
            throw isUndecided ? undecided(error, call.method) : error
          }
          yield decode(await messageOf(frame))
        }
      }
      frames.end()
    } catch (error) {
      throw this.#asCliError(error, call.method, request)
    } finally {
      request.end()
    }
  }

  /**
   * Sends a session request under the header prefix that the server accepts. A server that does not accept
   * the prefix takes it for a JSON request: it rejects the body of an append, and reads once.
   */
  async #openSession(call: Call, request: TimedRequest): Promise<Response> {
    let firstError: CliError | undefined
    for (const prefix of this.#headerPrefixes) {
      const response = await this.#send(call, request, sessionContentType(prefix))
      const isJson = mediaKind(response.headers.get('content-type')) === 'json'
      if (response.ok && !isJson) {
        this.#headerPrefixes = [prefix]
        return response
      }
      const error = this.#responseError(call, response, await request.body(response))
      firstError ??= error
      const code = error instanceof ServiceError ? error.code : undefined
      const isOneRead = call.method === 'GET' && (response.ok || code === 'range_not_satisfiable')
      if (!isOneRead && code !== 'bad_json') break
    }
    throw firstError
  }

  async #bytes(call: Call): Promise<{ readonly body: Uint8Array }> {
    const request = new TimedRequest(this.#options)
    try {
      const response = await this.#send(call, request, call.type ?? 'application/json')
      const body = await request.body(response)
      if (response.ok && body !== undefined) return { body }
      throw this.#responseError(call, response, body)
    } catch (error) {
      throw this.#asCliError(error, call.method, request)
    } finally {
      request.end()
    }
  }

  async #send({ method, path, basin, body }: Call, request: TimedRequest, type: string): Promise<Response> {
    const { fetch, url, token, encryptionKey } = this.#options
    const headers = new Headers({ accept: 'application/json' })
    if (token !== undefined) headers.set('authorization', `Bearer ${token}`)
    if (body !== undefined || method === 'GET') headers.set('content-type', type)
    // Under every prefix, because servers differ.
    for (const prefix of HEADER_PREFIXES) {
      if (basin !== undefined) headers.set(vendorHeaderName(prefix, 'basin'), basin)
      if (encryptionKey !== undefined && path.includes('/records')) {
        headers.set(vendorHeaderName(prefix, 'encryption-key'), encryptionKey)
      }
    }
    const response = await request.send(fetch, `${url}/v1${path}`, { method, headers, body })
    this.#hasResponded = true
    return response
  }

  #responseError({ method }: Call, response: Response, body: Uint8Array | undefined): CliError {
    const { ok, status } = response
    if (ok) return undecided(this.#unexpected(body === undefined ? TOO_LONG : NOT_SPECIFIED), method)
    const error = this.#errorOf(status, body)
    if (error instanceof ServiceError) return error
    // A proxy may have forwarded the request.
    if (status >= 500) return undecided(error, method)
    error.message += schemeHint(this.#options.url, response, body)
    return error
  }

  #errorOf(status: number, body: Uint8Array | undefined): CliError {
    if (body === undefined) return this.#unexpected(TOO_LONG)
    try {
      return serviceErrorOf(status, objectOf(readJson(body), 'body'))
    } catch (error) {
      if (!HeadwaterError.is(error)) throw error
      const unexpected = this.#unexpected(`its status is ${status}`)
      // A proxy whose server is gone.
      return status === 502 || status === 503 || status === 504
        ? new ConnectionError(unexpected.message)
        : unexpected
    }
  }

  /** The URL is wrong, or a proxy responded. */
  #unexpected(problem: string): CliError {
    return new CliError(1, `unexpected response from ${this.#options.name}: ${problem}`)
  }

  #asCliError(error: unknown, method: Call['method'], request: TimedRequest): unknown {
    const { signal, name, url } = this.#options
    if (signal.aborted) return signal.reason
    if (error instanceof CliError) return error
    if (HeadwaterError.is(error)) return undecided(this.#unexpected(printable(error.message)), method)
    const server = { url, hasResponded: this.#hasResponded }
    const { reason, wasNotSent, isRefused, hint } = connectionFailure(error, server)
    const problem = request.silence ?? reason
    const lost = new ConnectionError(`cannot reach ${name}: ${problem}`, isRefused)
    if (!wasNotSent) undecided(lost, method)
    lost.message += hint
    return lost
  }
}

/** States in the message of an error that the outcome of a request is not known, and returns the error. */
function undecided(error: CliError, method: Call['method']): CliError {
  if (method !== 'GET') error.message += '; the request may have taken effect'
  return error
}

/** Decodes the body of an error response (docs/protocol.md "Error bodies"). */
function serviceErrorOf(status: number, body: JsonObject): ServiceError {
  if (status === 416) {
    const tail = required(required(body, 'tail', objectOf), 'seq_num', integerOf)
    return new ServiceError('range_not_satisfiable', `no record is available; the tail is ${tail}`, tail)
  }
  if (status !== 412)
    return new ServiceError(required(body, 'code', stringOf), required(body, 'message', stringOf))
  const seqNum = optional(body, 'seq_num_mismatch', integerOf)
  return seqNum === undefined
    ? new ServiceError('fencing_token_mismatch', 'the stream has another fencing token')
    : new ServiceError('seq_num_mismatch', `the next sequence number is ${seqNum}`)
}

/** Reads the JSON that a user typed. Throws `HeadwaterError`. */
export function jsonObject(text: string): JsonObject {
  return objectOf(readJsonText(text), 'the value')
}
