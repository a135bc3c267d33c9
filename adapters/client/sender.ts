import { EMPTY_BYTES, lossyTextOf } from '../../src/model/bytes.ts'
import type { StreamConfigInput } from '../../src/model/config.ts'
import { RedactedKey } from '../../src/model/encryption-key.ts'
import { HeadwaterError } from '../../src/model/errors.ts'
import { type AnySignal, onAbort, type SharedSignal, unlessAborted } from '../../src/runtime/abort.ts'
import { STATUS_HEADER, type VendorHeader, vendorHeaderName } from '../../src/wire/headers.ts'
import { Malformed, parseJson } from '../../src/wire/json.ts'
import { STREAM_CONFIG_INPUT } from '../../src/wire/json-config.ts'
import { mediaTypeEssence } from '../../src/wire/media-type.ts'
import type { Call, CallReply, CallSender, OpenResponse, Outcome } from './call.ts'
import {
  clientClosedError,
  connectionFailure,
  decoded,
  type Failure,
  failureOf,
  hiddenFailureOf,
  mayBeSent,
  notOfTheProtocol,
  unexpectedResponse,
  withEffects,
} from './errors.ts'
import { Exchange, type IncomingResponse, type Transport } from './exchange.ts'
import { isToken, type Settings } from './options.ts'
import { RequestCompression } from './request-compression.ts'
import { pause, pauseMs, retryAfterMsOf } from './retry.ts'
import { SessionFetch } from './session-fetch.ts'

/** Read sessions are sent a heartbeat in half of this time, in milliseconds. */
const SESSION_SILENCE_MS = 30_000

/** Sends requests with the access token, and repeats those that are safe to repeat. */
export class Sender implements CallSender {
  readonly settings: Settings
  readonly closing: SharedSignal
  readonly sessions: SessionFetch
  readonly #ended: SharedSignal
  readonly #compression: RequestCompression
  #token: Promise<string | undefined> | undefined

  /** @param ended Ends appends, which outlive the begin of `closing`. */
  constructor(settings: Settings, closing: SharedSignal, ended: SharedSignal) {
    this.settings = settings
    this.closing = closing
    this.#ended = ended
    this.sessions = new SessionFetch(settings)
    this.#compression = new RequestCompression(settings.compression)
  }

  /** Resolves to a successful response. Rejects with what the last attempt failed with. */
  async send(call: Call): Promise<CallReply> {
    const outcome = await this.attempt(call)
    if (outcome.kind === 'reply') return outcome
    const { error, isRepeated } = outcome
    throw isRepeated ? withEffects(error, true) : error
  }

  /** Sends a call and decodes the JSON of the response. */
  async json<Value>(call: Call, decode: (value: unknown, reply: CallReply) => Value): Promise<Value> {
    const reply = await this.send(call)
    return decoded(call.method !== 'GET', () => decode(parseJson(lossyTextOf(reply.body)), reply))
  }

  /** Sends a call until it succeeds, fails for good, or has been repeated too often. */
  async attempt(call: Call): Promise<Outcome> {
    const { clock, random, retries } = this.settings
    const signals = [this.closing, call.signal]
    let isRepeated = false
    for (let repetition = 1; ; repetition++) {
      const result = await this.#once(call)
      if (!('error' in result)) return { kind: 'reply', ...result, isRepeated }
      const { error, isTransient, retryAfterMs } = result
      const maySendAgain = call.isRepeatable || !error.mayHaveEffects
      if (!isTransient || !maySendAgain || repetition > retries) return { kind: 'failed', error, isRepeated }
      isRepeated ||= error.mayHaveEffects
      const ms = pauseMs(repetition, retryAfterMs, random())
      this.settings.onRetry(error, ms)
      await pause(clock, ms, signals).catch((reason: unknown) => {
        throw isRepeated && HeadwaterError.is(reason) ? withEffects(reason, true) : reason
      })
    }
  }

  /**
   * Sends a session request once. Resolves to the open response, or to the failure.
   *
   * @param signal Ends the session.
   */
  async open(call: Call, signal: SharedSignal): Promise<OpenResponse | Failure> {
    const exchange = new Exchange(this.settings.clock, SESSION_SILENCE_MS, [this.#endOf(call), signal])
    const { sessions } = this
    const { upload } = call
    try {
      const response = await this.#authorized(call, exchange, (request) =>
        upload === undefined ? sessions.fetch(request) : sessions.duplex(request, upload),
      )
      const failure = isSuccess(response)
        ? await this.#hiddenInSession(call, response, exchange)
        : await this.#failed(call, response, exchange)
      if (failure === undefined) return { response, exchange }
      exchange.end()
      return failure
    } catch (error) {
      exchange.end()
      return this.#lost(call, error, signal)
    }
  }

  /** Forgets the token, so that the next request gets another. Returns whether there may be another. */
  renewToken(): boolean {
    if (this.settings.renewsToken) this.#token = undefined
    return this.settings.renewsToken
  }

  #endOf({ isAppend }: Call): SharedSignal {
    return isAppend ? this.#ended : this.closing
  }

  async #once(call: Call): Promise<Omit<CallReply, 'isRepeated'> | Failure> {
    const { clock, requestTimeoutMs } = this.settings
    const silenceMs = requestTimeoutMs + (call.waitMs ?? 0)
    const exchange = new Exchange(clock, silenceMs, [this.#endOf(call), call.signal])
    try {
      const response = await this.#authorized(call, exchange, async (request) =>
        this.settings.fetch(request.toRequest()),
      )
      if (!isSuccess(response)) return await this.#failed(call, response, exchange)
      const { headers } = response
      const body = await exchange.body(response)
      const type = mediaTypeEssence(headers.get('content-type'))
      const hidden = this.#hidden(call, type, body)
      if (hidden !== undefined) return hidden
      if (isExpected(type, body, call)) return { headers, body }
      const content = type === undefined ? 'a body without a content type' : `a body of the type ${type}`
      return notOfTheProtocol(`status ${response.status} with ${content}`, call.method !== 'GET')
    } catch (error) {
      return this.#lost(call, error, call.signal)
    } finally {
      exchange.end()
    }
  }

  /** Sends the request, and once more with another token if the server rejects the first. */
  async #authorized(call: Call, exchange: Exchange, transport: Transport): Promise<IncomingResponse> {
    const transmit = async (token: string | undefined): Promise<IncomingResponse> => {
      const { method, body } = call
      const headers = this.#headers(call, token)
      const compressed = await this.#compression.gzip(body)
      if (compressed !== undefined) headers['content-encoding'] = 'gzip'
      const content = { method, headers, body: compressed ?? body }
      const response = await exchange.send(transport, `${this.settings.url}${call.path}`, content)
      if (response.status !== 415 || compressed === undefined) return response
      this.#compression.disable()
      await exchange.body(response)
      return transmit(token)
    }
    const asked = this.#askForToken()
    // A request that waits for the app's token when the client begins to close has not been sent.
    const mayWait = this.closing.aborted || !this.settings.renewsToken
    const waiting = mayWait ? asked : unlessAborted(this.closing, asked)
    const token = await exchange.unlessEnded(waiting)
    const response = await transmit(token)
    if (response.status !== 401 || !this.settings.renewsToken) return response
    // Another request may have got another token meanwhile.
    if (this.#token === asked) this.renewToken()
    const renewed = await exchange.unlessEnded(this.#askForToken())
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

  #askForToken(): Promise<string | undefined> {
    if (this.#token !== undefined) return this.#token
    const { getToken, renewsToken } = this.settings
    const given = (async () => getToken())()
    const asked = renewsToken ? this.#withinDeadline(given) : given
    this.#token = asked
    asked.catch(() => {
      if (this.#token === asked) this.#token = undefined
      // A token that is too late for this request serves the next one.
      const keep = (token: unknown) => {
        if (isGivenToken(token)) this.#token ??= Promise.resolve(token)
      }
      given.then(keep, () => {})
    })
    return asked
  }

  /**
   * Resolves to the token of the app. Rejects with a retryable error if it cannot be had now, for example
   * without a network, and with an error of headwater that the app throws as it is.
   */
  async #withinDeadline(given: Promise<string | undefined>): Promise<string> {
    const { clock, requestTimeoutMs } = this.settings
    let cancelTimer = () => {}
    const timeout = new Promise<never>((_, reject) => {
      cancelTimer = clock.schedule(requestTimeoutMs, () => {
        reject(tokenError(`did not settle within ${requestTimeoutMs} ms`))
      })
    })
    const ignoreClosing = onAbort(this.closing, cancelTimer)
    try {
      const token = await Promise.race([given, timeout])
      if (isGivenToken(token)) return token
      throw tokenError('must return a token of visible ASCII characters without `<>{}"`')
    } catch (error) {
      if (HeadwaterError.is(error)) throw withEffects(error, false)
      throw tokenError(`failed: ${reasonOf(error)}`, error)
    } finally {
      cancelTimer()
      ignoreClosing()
    }
  }

  async #failed(call: Call, response: IncomingResponse, exchange: Exchange): Promise<Failure> {
    const isSafe = call.method === 'GET'
    const { headers, type } = response
    const status = Number(headers.get(STATUS_HEADER) ?? response.status)
    if (type === 'opaqueredirect' || (status >= 300 && status < 400)) {
      const error = unexpectedResponse('it redirects; pass the final address as `url`', false)
      return { error, isTransient: false, retryAfterMs: 0 }
    }
    const isJson = isJsonType(mediaTypeEssence(headers.get('content-type')))
    const body = isJson ? await exchange.body(response) : EMPTY_BYTES
    const retryAfterMs = retryAfterMsOf(headers, this.settings.clock.now())
    return failureOf(status, lossyTextOf(body), isSafe, retryAfterMs)
  }

  /** The failure that the body of a reply without the header of the status tells. */
  #hidden(call: Call, type: string | undefined, body: Uint8Array): Failure | undefined {
    if (!this.settings.isPage || !isJsonType(type)) return undefined
    return hiddenFailureOf(lossyTextOf(body), call.method === 'GET', acceptsJson(call))
  }

  /** The same for a session, whose body is not to be read if it is one. */
  async #hiddenInSession(
    call: Call,
    response: IncomingResponse,
    exchange: Exchange,
  ): Promise<Failure | undefined> {
    const type = mediaTypeEssence(response.headers.get('content-type'))
    if (!this.settings.isPage || !isJsonType(type)) return undefined
    return this.#hidden(call, type, await exchange.body(response))
  }

  /** Throws the reason of a signal that ended the request. */
  #lost(call: Call, error: unknown, signal: AnySignal | undefined): Failure {
    if (signal?.aborted) throw signal.reason
    const isSafe = call.method === 'GET'
    if (this.#endOf(call).aborted) throw withEffects(clientClosedError(), !isSafe)
    if (error instanceof Malformed) {
      return { error: unexpectedResponse(error.message, !isSafe), isTransient: false, retryAfterMs: 0 }
    }
    return connectionFailure(error, !isSafe && mayBeSent(error))
  }
}

function headerText(value: string | RedactedKey | StreamConfigInput | undefined): string | undefined {
  if (typeof value !== 'object') return value
  return value instanceof RedactedKey ? value.headerText() : STREAM_CONFIG_INPUT.text(value)
}

/** Whether a response is not an expected outcome that the server has sent as a success. */
function isSuccess({ ok, headers }: IncomingResponse): boolean {
  return ok && headers.get(STATUS_HEADER) === null
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

/** Whether the app has given a token: pages of gateways and bodies of errors are none. */
function isGivenToken(given: unknown): given is string {
  return isToken(given) && !/[<>{}"]/.test(given)
}

/** Returns the message of what an app has thrown, which may be anything. */
function reasonOf(thrown: unknown): string {
  const { message } = Object(thrown) as { readonly message?: unknown }
  const reason = typeof thrown === 'string' ? thrown : message
  return typeof reason === 'string' ? reason.slice(0, 500) : 'no reason was given'
}

function tokenError(problem: string, cause?: unknown): HeadwaterError {
  const details = { mayHaveEffects: false, ...(cause !== undefined && { cause }) }
  return new HeadwaterError('unavailable', `\`getToken\` ${problem}`, details)
}
