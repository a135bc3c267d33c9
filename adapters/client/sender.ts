import { EMPTY_BYTES, lossyTextOf } from '../../src/model/bytes.ts'
import type { StreamConfigInput } from '../../src/model/config.ts'
import { EncryptionKey } from '../../src/model/encryption-key.ts'
import { HeadwaterError } from '../../src/model/errors.ts'
import { type AnySignal, type SharedSignal, unlessAborted } from '../../src/runtime/abort.ts'
import { trackExternalWork } from '../../src/runtime/clock.ts'
import { isNode } from '../../src/runtime/node.ts'
import { nodeZlib } from '../../src/wire/codecs.ts'
import { platformCodec } from '../../src/wire/compression.ts'
import { STATUS_HEADER, type VendorHeader, vendorHeaderName } from '../../src/wire/headers.ts'
import { parseJson } from '../../src/wire/json.ts'
import { STREAM_CONFIG_INPUT } from '../../src/wire/json-config.ts'
import { mediaTypeEssence } from '../../src/wire/media-type.ts'
import { AccessToken } from './access-token.ts'
import type { Call, OpenSession, Reply, SessionCall } from './call.ts'
import {
  clientClosedError,
  connectionFailure,
  decoded,
  Failure,
  failureOf,
  hiddenFailureOf,
  NoHttp2,
  notOfTheProtocol,
  unexpectedResponse,
  unwrapFailure,
  withEffects,
} from './errors.ts'
import { Http2Transport } from './node-http2.ts'
import type { Settings } from './options.ts'
import { Exchange, fetchTransport, type IncomingResponse, type Transport } from './transport.ts'

/** Read sessions are sent a heartbeat in half of this time, in milliseconds. */
const SESSION_SILENCE_MS = 30_000
const FIRST_PAUSE_MS = 100
const PAUSE_MS_MAX = 5_000
/** Longer requests of a server to wait are cut to this. */
const RETRY_AFTER_MS_MAX = 30_000
/** Shorter bodies are not compressed. */
const COMPRESSION_BYTES_MIN = 8_192

/** Sends requests with the access token, and repeats those that are safe to repeat. */
export class Sender {
  readonly settings: Settings
  /** Aborts when the client begins to close. */
  readonly closing: SharedSignal
  readonly token: AccessToken
  readonly #ended: SharedSignal
  readonly #fetch: Transport
  /** Sends sessions in Node, whose `fetch` has one direction at a time. */
  readonly #http2: Http2Transport | undefined

  /** @param ended Ends appends, which outlive the begin of `closing`. */
  constructor(settings: Settings, closing: SharedSignal, ended: SharedSignal) {
    this.settings = settings
    this.closing = closing
    this.#ended = ended
    this.token = new AccessToken(settings, closing)
    this.#fetch = fetchTransport(settings.fetch)
    const { http2, url } = settings
    this.#http2 = http2 && isNode() ? new Http2Transport(new URL(url).origin) : undefined
  }

  /** Sends a call, again while it is safe and may help. Resolves to a successful response. */
  send(call: Call): Promise<Reply> {
    return unwrapFailure(this.attempt(call))
  }

  /** Sends a call and decodes the JSON of the response. */
  async json<Value>(call: Call, decode: (value: unknown, reply: Reply) => Value): Promise<Value> {
    const reply = await this.send(call)
    return decoded(call.method !== 'GET', () => decode(parseJson(lossyTextOf(reply.body)), reply))
  }

  /** Does what `send` does, but rejects with the {@link Failure} of the last attempt. */
  attempt(call: Call): Promise<Reply> {
    return this.retrying(call, () => this.#once(call))
  }

  /** Repeats an attempt that rejects with a {@link Failure} while it is safe and may help. */
  async retrying<Result>(
    { isRepeatable, signal }: Pick<Call, 'isRepeatable' | 'signal'>,
    attempt: () => Promise<Result>,
  ): Promise<Result> {
    let isRepeated = false
    for (let repetition = 1; ; repetition++) {
      try {
        return await attempt()
      } catch (failure) {
        if (!(failure instanceof Failure)) throw failure
        const { error, isTransient } = failure
        failure.isRepeated = isRepeated
        const maySendAgain = isRepeatable || !error.mayHaveEffects
        if (!isTransient || !maySendAgain || repetition > this.settings.retries) throw failure
        isRepeated ||= error.mayHaveEffects
        await this.pause(repetition, failure, signal).catch((reason: unknown) => {
          throw isRepeated && HeadwaterError.is(reason) ? withEffects(reason, true) : reason
        })
      }
    }
  }

  /**
   * Waits before an attempt, the first repetition being 1: exponential back-off with full jitter, and at
   * least what the server asks for, up to 30 s. Rejects with the reason of a signal.
   */
  async pause(repetition: number, { error, retryAfterMs }: Failure, signal?: AnySignal): Promise<void> {
    const { clock, random, onRetry } = this.settings
    const most = Math.min(FIRST_PAUSE_MS * 2 ** (repetition - 1), PAUSE_MS_MAX)
    const ms = Math.max(Math.floor(most * random()), Math.min(retryAfterMs, RETRY_AFTER_MS_MAX))
    onRetry(error, ms)
    let cancel = () => {}
    const elapsed = new Promise<void>((resolve) => {
      cancel = clock.schedule(ms, resolve)
    })
    await unlessAborted(this.closing, unlessAborted(signal, elapsed)).finally(() => cancel())
  }

  /**
   * Sends a session request once. Resolves to the open response. Rejects with {@link Failure}, and with
   * {@link NoHttp2} if the session needs both directions and the server has one at a time.
   *
   * @param signal Ends the session.
   */
  async open(call: SessionCall, signal: SharedSignal): Promise<OpenSession> {
    const exchange = new Exchange(this.settings.clock, SESSION_SILENCE_MS, [this.#endOf(call), signal])
    const transport: Transport = {
      send: async (request) => {
        const response = await this.#http2?.send({ ...request, upload: call.upload })
        if (response === undefined && call.upload !== undefined) throw new NoHttp2()
        return response ?? this.#fetch.send(request)
      },
    }
    try {
      const response = await this.#authorized(call, exchange, transport)
      const type = mediaTypeEssence(response.header('content-type'))
      if (isSuccess(response) && type === call.mediaType) return { response, exchange }
      // The body of another session would not end.
      if (!isSuccess(response) || isJsonType(type)) await this.#succeeded(call, response, exchange)
      const kind = call.isAppend ? 'an append' : 'a read'
      throw new Failure(unexpectedResponse(`it is not ${kind} session; check \`url\``, false))
    } catch (error) {
      exchange.end()
      throw this.#failureOf(call, error, signal)
    }
  }

  /** Whether sessions can append: both directions at once. A server may still speak HTTP/1.1 only. */
  get isDuplex(): boolean {
    return this.#http2 !== undefined
  }

  /** Ends the connections of sessions. */
  close(): void {
    this.#http2?.close()
  }

  #endOf({ isAppend }: Call): SharedSignal {
    return isAppend ? this.#ended : this.closing
  }

  async #once(call: Call): Promise<Reply> {
    const { clock, requestTimeoutMs } = this.settings
    const silenceMs = requestTimeoutMs + (call.waitMs ?? 0)
    const exchange = new Exchange(clock, silenceMs, [this.#endOf(call), call.signal])
    try {
      const response = await this.#authorized(call, exchange, this.#fetch)
      const { type, body } = await this.#succeeded(call, response, exchange)
      if (isExpected(type, body, call)) return { header: response.header, body }
      const content = type === undefined ? 'a body without a content type' : `a body of the type ${type}`
      throw notOfTheProtocol(`status ${response.status} with ${content}`, call.method !== 'GET')
    } catch (error) {
      throw this.#failureOf(call, error, call.signal)
    } finally {
      exchange.end()
    }
  }

  /** Sends the request, and once more with another token if the server rejects the first. */
  async #authorized(call: Call, exchange: Exchange, transport: Transport): Promise<IncomingResponse> {
    const { method } = call
    const url = `${this.settings.url}${call.path}`
    const compressed = await this.#compressed(call.body)
    const body = compressed ?? call.body
    const transmit = (token: string | undefined) => {
      const headers = this.#headers(call, token)
      if (compressed !== undefined) headers['content-encoding'] = 'gzip'
      return exchange.send(transport, { method, url, headers, body })
    }
    const token = await exchange.unlessEnded(this.token.get())
    const response = await transmit(token)
    if (response.status !== 401 || !this.token.renew(token)) return response
    const renewed = await exchange.unlessEnded(this.token.get())
    if (renewed === token) return response
    await exchange.body(response)
    return transmit(renewed)
  }

  #headers(
    { basin, vendor, headers: own, accept, contentType }: Call,
    token: string | undefined,
  ): Record<string, string> {
    const headers: Record<string, string> = { ...own, accept: accept ?? 'application/json' }
    if (this.settings.isPage) headers[STATUS_HEADER] = 'ok'
    if (token !== undefined) headers.authorization = `Bearer ${token}`
    if (contentType !== undefined) headers['content-type'] = contentType
    const values = { ...vendor, basin }
    for (const name of Object.keys(values) as VendorHeader[]) {
      const text = headerText(values[name])
      if (text !== undefined) headers[vendorHeaderName(this.settings.headerPrefix, name)] = text
    }
    return headers
  }

  /**
   * Compresses a body where the runtime does that on other threads. Undefined if it is better sent as it is.
   */
  async #compressed(body: Uint8Array | undefined): Promise<Uint8Array | undefined> {
    const isLong = this.settings.compression && body !== undefined && body.length >= COMPRESSION_BYTES_MIN
    const codec = isLong && nodeZlib() && platformCodec('gzip')
    if (!codec) return undefined
    const compressed = await trackExternalWork(codec.compress(body))
    return compressed.length < body.length ? compressed : undefined
  }

  /** Resolves to the body of a success. Rejects with the failure that the response reports. */
  async #succeeded(
    call: Call,
    response: IncomingResponse,
    exchange: Exchange,
  ): Promise<{ readonly type: string | undefined; readonly body: Uint8Array }> {
    const { status } = response
    if (status >= 300 && status < 400) {
      throw new Failure(unexpectedResponse('it redirects; pass the final address as `url`', false))
    }
    const type = mediaTypeEssence(response.header('content-type'))
    const isSafe = call.method === 'GET'
    if (!isSuccess(response)) {
      const body = isJsonType(type) ? await exchange.body(response) : EMPTY_BYTES
      throw failureOf(status, lossyTextOf(body), isSafe, retryAfterMsOf(response))
    }
    const body = await exchange.body(response)
    const mayBeHidden = this.settings.isPage && isJsonType(type)
    const hidden = mayBeHidden && hiddenFailureOf(lossyTextOf(body), isSafe, acceptsJson(call))
    if (hidden) throw hidden
    return { type, body }
  }

  /** Returns the failure of an attempt. Throws the reason of a signal that ended it. */
  #failureOf(call: Call, error: unknown, signal: AnySignal | undefined): Failure | NoHttp2 {
    if (error instanceof Failure || error instanceof NoHttp2) return error
    if (signal?.aborted) throw signal.reason
    const isSafe = call.method === 'GET'
    if (this.#endOf(call).aborted) throw withEffects(clientClosedError(), !isSafe)
    return connectionFailure(error, isSafe)
  }
}

/** The pause that a response asks for, in milliseconds: `retry-after-ms`, or `retry-after` in seconds. */
function retryAfterMsOf({ header }: IncomingResponse): number {
  const exact = Number(header('retry-after-ms') ?? Number.NaN)
  if (exact >= 0) return exact
  const seconds = Number(header('retry-after') ?? 0)
  return seconds > 0 ? seconds * 1000 : 0
}

function headerText(value: string | EncryptionKey | StreamConfigInput | undefined): string | undefined {
  if (typeof value !== 'object') return value
  return value instanceof EncryptionKey ? value.headerText() : STREAM_CONFIG_INPUT.text(value)
}

function isSuccess({ status }: IncomingResponse): boolean {
  return status >= 200 && status < 300
}

/** Whether a successful reply can be one of the protocol: a page of a captive portal or a gateway is not. */
function isExpected(type: string | undefined, body: Uint8Array, call: Call): boolean {
  if (body.length === 0) return type !== 'text/html'
  // Deletions and revocations have no result.
  if (call.method === 'DELETE') return false
  return acceptsJson(call) ? isJsonType(type) : type === call.accept
}

function acceptsJson({ accept = 'application/json' }: Call): boolean {
  return isJsonType(accept)
}

function isJsonType(type: string | undefined): boolean {
  return type?.endsWith('json') ?? false
}
