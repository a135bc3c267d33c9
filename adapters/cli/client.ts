import { HeadwaterError, type SequencedRecord } from '../../src/index.ts'
import { utf8 } from '../../src/model/bytes.ts'
import { FrameDecoder, messageOf } from '../../src/wire/frame.ts'
import { integerOf, objectOf, optional, required, stringOf } from '../../src/wire/json-members.ts'
import { type JsonObject, readJson, readJsonText } from '../../src/wire/json-reader.ts'
import { HEADER_PREFIXES, sessionContentType } from '../../src/wire/media-type.ts'
import { vendorHeaderName } from '../../src/wire/vendor-headers.ts'
import { TimedRequest } from '../transfer/timed-request.ts'
import { connectionFailure } from './connection-failure.ts'
import type { CliContext } from './context.ts'
import { CliError, ConnectionError, printable, ServiceError } from './errors.ts'

/** Follows the message of a failure after which the outcome of a request is not known. */
const UNDECIDED = '; the request may have taken effect'

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
 * The HTTP API of a server or of an engine in this process. Requests are not repeated. They reject with
 * {@link ServiceError} for an error response, and with {@link CliError} without data for 30 s and for any
 * other response.
 */
export class Client {
  readonly #options: ClientOptions
  #hasResponded = false

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
      throw this.#unexpected('its body is not what the API specifies')
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
      const response = await this.#send(call, request, sessionContentType('svc'))
      if (!response.ok) throw this.#errorOf(response.status, await request.body(response))
      onOpen?.()
      const frames = new FrameDecoder()
      for await (const chunk of request.chunks(response)) {
        for (const frame of frames.decode(chunk)) {
          if (frame.kind === 'terminal') {
            const error = this.#errorOf(frame.status, utf8(frame.body))
            // A server that closes may have stored inputs whose acks it can no longer send.
            if (call.method !== 'GET' && frame.status >= 500) error.message += UNDECIDED
            throw error
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

  async #bytes(call: Call): Promise<{ readonly body: Uint8Array }> {
    const request = new TimedRequest(this.#options)
    try {
      const response = await this.#send(call, request, call.type ?? 'application/json')
      const body = await request.body(response)
      if (response.ok && body !== undefined) return { body }
      throw this.#errorOf(response.status, body)
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

  #errorOf(status: number, body: Uint8Array | undefined): CliError {
    if (body === undefined) return this.#unexpected('its body is too long')
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
    if (HeadwaterError.is(error)) return this.#unexpected(printable(error.message))
    const server = { url, hasResponded: this.#hasResponded }
    const { reason, wasNotSent, isRefused, hint } = connectionFailure(error, server)
    const problem = request.silence ?? reason
    const outcome = method === 'GET' || wasNotSent ? '' : UNDECIDED
    return new ConnectionError(`cannot reach ${name}: ${problem}${outcome}${hint}`, isRefused)
  }
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
