import { HeadwaterError, type SequencedRecord } from '../../src/index.ts'
import { concatBytes, utf8 } from '../../src/model/bytes.ts'
import { FrameDecoder, messageOf } from '../../src/wire/frame.ts'
import { integerOf, objectOf, optional, required, stringOf } from '../../src/wire/json-members.ts'
import { type JsonObject, readJson, readJsonText } from '../../src/wire/json-reader.ts'
import { HEADER_PREFIXES, sessionContentType } from '../../src/wire/media-type.ts'
import { vendorHeaderName } from '../../src/wire/vendor-headers.ts'
import { connectionFailure } from './connection-failure.ts'
import type { CliContext } from './context.ts'
import { CliError, ConnectionError, printable, ServiceError } from './errors.ts'

/** The server must send a heartbeat in half of this time. */
const SILENCE_MS_MAX = 30_000
/** The slowest upload that is given time to finish before a response is expected. */
const UPLOAD_BYTES_PER_MS_MIN = 16
/** Far above a page of 1,000 names. */
const RESPONSE_BYTES_MAX = 16 * 1024 * 1024
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
    const timeout = new Timeout(this.#options, call.body?.length)
    try {
      const response = await this.#fetch(call, timeout, sessionContentType('svc'))
      if (!response.ok) throw this.#errorOf(response.status, await bodyOf(response, timeout))
      onOpen?.()
      const frames = new FrameDecoder()
      for await (const chunk of chunksOf(response, timeout)) {
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
      throw this.#asCliError(error, call.method, timeout)
    } finally {
      timeout.end()
    }
  }

  async #bytes(call: Call): Promise<{ readonly body: Uint8Array }> {
    const timeout = new Timeout(this.#options, call.body?.length)
    try {
      const response = await this.#fetch(call, timeout, call.type ?? 'application/json')
      const body = await bodyOf(response, timeout)
      if (response.ok && body !== undefined) return { body }
      throw this.#errorOf(response.status, body)
    } catch (error) {
      throw this.#asCliError(error, call.method, timeout)
    } finally {
      timeout.end()
    }
  }

  async #fetch({ method, path, basin, body }: Call, timeout: Timeout, type: string): Promise<Response> {
    const { url, token, encryptionKey } = this.#options
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
    // Following a redirect could turn a POST into a GET, or send the token to another host.
    const init: RequestInit = { method, headers, redirect: 'manual', signal: timeout.signal }
    if (body !== undefined) init.body = body as string | Uint8Array<ArrayBuffer>
    const response = await timeout.race(this.#options.fetch(new Request(`${url}/v1${path}`, init)))
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

  #asCliError(error: unknown, method: Call['method'], timeout: Timeout): unknown {
    const { signal, name, url } = this.#options
    if (signal.aborted) return signal.reason
    if (error instanceof CliError) return error
    if (HeadwaterError.is(error)) return this.#unexpected(printable(error.message))
    const server = { url, hasResponded: this.#hasResponded }
    const { reason, wasNotSent, isRefused, hint } = connectionFailure(error, server)
    const problem = timeout.isSilent ? `no response within ${SILENCE_MS_MAX / 1000} seconds` : reason
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

/** Aborts a request that has been silent for too long, or that the user stops. */
class Timeout {
  isSilent = false
  readonly #control = new AbortController()
  readonly #options: ClientOptions
  readonly #stop = () => this.#control.abort()
  #cancel: () => void

  constructor(options: ClientOptions, bodyLength = 0) {
    this.#options = options
    this.#cancel = this.#schedule(SILENCE_MS_MAX + bodyLength / UPLOAD_BYTES_PER_MS_MIN)
    options.signal.addEventListener('abort', this.#stop, { once: true })
    if (options.signal.aborted) this.#stop()
  }

  get signal(): AbortSignal {
    return this.#control.signal
  }

  /** Starts again, because data has arrived. */
  restart(): void {
    this.#cancel()
    this.#cancel = this.#schedule()
  }

  /** Rejects when the request is aborted: not every `fetch` reacts to its signal immediately. */
  race<Value>(promise: Promise<Value>): Promise<Value> {
    const { signal } = this
    return new Promise((resolve, reject) => {
      const abort = () => reject(new Error('aborted'))
      if (signal.aborted) abort()
      signal.addEventListener('abort', abort, { once: true })
      promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
    })
  }

  /** Also aborts a response that was not read to its end. */
  end(): void {
    this.#cancel()
    this.#options.signal.removeEventListener('abort', this.#stop)
    this.#control.abort()
  }

  #schedule(ms = SILENCE_MS_MAX): () => void {
    return this.#options.clock.schedule(ms, () => {
      this.isSilent = true
      this.#control.abort()
    })
  }
}

async function* chunksOf(response: Response, timeout: Timeout): AsyncGenerator<Uint8Array> {
  const reader = response.body?.getReader()
  if (reader === undefined) return
  try {
    for (;;) {
      const { done, value } = await timeout.race(reader.read())
      if (done) return
      timeout.restart()
      yield value
    }
  } finally {
    reader.cancel().catch(() => {})
  }
}

/** Resolves to undefined if the body is too long. */
async function bodyOf(response: Response, timeout: Timeout): Promise<Uint8Array | undefined> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of chunksOf(response, timeout)) {
    length += chunk.length
    if (length > RESPONSE_BYTES_MAX) return undefined
    chunks.push(chunk)
  }
  return concatBytes(chunks)
}

/** Reads the JSON that a user typed. Throws `HeadwaterError`. */
export function jsonObject(text: string): JsonObject {
  return objectOf(readJsonText(text), 'the value')
}
