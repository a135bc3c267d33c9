import type { Engine } from '../../src/index.ts'
import { utf8 } from '../../src/model/bytes.ts'
import { HeadwaterError, invalid } from '../../src/model/errors.ts'
import { mistakeIn } from '../../src/model/validation.ts'
import { onAbort } from '../../src/runtime/abort.ts'
import { isPromise, type MaybePromise } from '../../src/runtime/maybe-promise.ts'
import {
  compress,
  contentCodingOf,
  RESPONSE_COMPRESSION_BYTES_MIN,
  responseCodingOf,
} from '../../src/wire/compression.ts'
import { STATUS_HEADER, STREAM_ID_HEADER } from '../../src/wire/headers.ts'
import type { RequestExchange } from './exchange.ts'
import type { HandlerSettings } from './options.ts'
import { assertAllowedOrigin, corsHeaders, hostRejection, preflightReply } from './origins.ts'
import { errorReply, type Reply, rejection } from './reply.ts'
import { ApiRequest, type Method, type Methods } from './request.ts'
import type { RouteMatch, Router } from './router.ts'

/** The reply to a client that has left, which never receives it. */
const CLIENT_LEFT = rejection(499, 'client_hangup', 'the client closed the request')
/** The reply to an unknown path, which it does not repeat: a client may have put a secret into it. */
const NO_ENDPOINT = rejection(404, 'not_found', 'no endpoint has this path')
const SUPPORTED_CODINGS = 'gzip, zstd'
const UNSUPPORTED_CODING = rejection(
  415,
  'unsupported_encoding',
  `the request body has an unsupported \`content-encoding\`; supported: ${SUPPORTED_CODINGS}`,
  { 'accept-encoding': SUPPORTED_CODINGS },
)
const METRICS = ['account-metrics'] as const

/** An engine, or a function that opens it for the first request. */
export type EngineSource = Engine | (() => Promise<Engine>)

/** Returns the reply of a protocol to an error of a request with this method. */
type ErrorReply = (error: unknown, method: string) => Reply | undefined

/** A protocol over HTTP without a runtime: turns exchanges into replies. */
export class HttpCore {
  readonly #open: (() => Promise<Engine>) | undefined
  #engine: Engine | undefined
  readonly #settings: HandlerSettings
  readonly #router: Router<Methods>
  readonly #replyTo: ErrorReply | undefined

  /**
   * `replyTo` returns the reply to an error, or undefined for one that every protocol reports alike. Throws
   * `invalid` unless `hw` is an engine or a function.
   */
  constructor(
    hw: EngineSource,
    settings: HandlerSettings,
    router: Router<Methods>,
    replyTo?: ErrorReply | undefined,
  ) {
    this.#settings = settings
    this.#router = router
    this.#replyTo = replyTo
    if (typeof hw === 'function') this.#open = openOnce(hw)
    else this.#engine = assertEngine(hw)
  }

  /** The engine that owns the streams; undefined before the first request opens it. */
  get engine(): Engine | undefined {
    return this.#engine
  }

  /** Returns whether the path belongs to an endpoint. */
  serves(path: string): boolean {
    return this.#router.match(path, this.#settings.prefix) !== undefined
  }

  /** Never throws or rejects: every failure is a reply. */
  handle(exchange: RequestExchange): MaybePromise<Reply> {
    const settings = this.#settings
    const misdirected = hostRejection(exchange, settings)
    if (misdirected) return finishReply(misdirected, exchange, settings)
    const preflight = exchange.method === 'OPTIONS' && preflightReply(exchange, settings.allowedOrigins)
    if (preflight) return preflight
    const match = this.#router.match(exchange.path, settings.prefix)
    if (match === undefined) return finishReply(NO_ENDPOINT, exchange, settings)
    const method = methodOf(match, exchange.method)
    if (method === undefined) return finishReply(methodNotAllowed(match), exchange, settings)
    return this.#call(new ApiRequest(exchange, match, settings), method)
  }

  async #call(request: ApiRequest, method: Method): Promise<Reply> {
    const { exchange, settings } = request
    let reply: Reply
    let streamId: string | undefined
    try {
      request.owner = this.#open === undefined ? this.#engine! : await this.#opened(this.#open, exchange)
      const authorized = this.#authorize(request, method)
      const hw = isPromise(authorized) ? await authorized : authorized
      const coding = exchange.header('content-encoding')
      const isSupported = coding === undefined || contentCodingOf(coding) !== undefined
      reply = isSupported ? await method.endpoint(request, hw) : UNSUPPORTED_CODING
      streamId = request.streamId
    } catch (error) {
      if (exchange.signal.aborted && error === exchange.signal.reason) reply = CLIENT_LEFT
      else {
        const own = this.#replyTo?.(error, exchange.method)
        if (own === undefined) request.report(error)
        reply = own ?? errorReply(error)
      }
    }
    return finishReply(reply, exchange, settings, streamId)
  }

  /** Rejects with `unavailable` and the reason while the engine cannot be opened. */
  async #opened(open: () => Promise<Engine>, exchange: RequestExchange): Promise<Engine> {
    try {
      this.#engine = assertEngine(await open())
      return this.#engine
    } catch (cause) {
      this.#settings.onError(cause, exchange)
      // Other messages may contain anything.
      const reason = HeadwaterError.is(cause) ? `: ${cause.message}` : ''
      throw new HeadwaterError('unavailable', `the streams cannot be opened${reason}`, { cause })
    }
  }

  /**
   * Returns the engine with the caller's permissions. Throws or rejects with 401 `authn` or 403
   * `permission_denied` before the body is read, as far as the address of the request names the resource; the
   * engine checks every call again.
   */
  #authorize(request: ApiRequest, { operations }: Method): MaybePromise<Engine> {
    const { auth, allowedOrigins, publicMetrics, retention } = this.#settings
    const hw = request.owner.onConnection(request.exchange.connection ?? this.#settings.connection, retention)
    const isPublic = operations === 'public' || (operations === 'metrics' && publicMetrics)
    if (auth === 'none' && !isPublic) assertAllowedOrigin(request.exchange, allowedOrigins)
    if (isPublic || auth === 'none') return hw
    const token = this.#settings.getToken(request.exchange)
    const needed = operations === 'metrics' ? METRICS : operations
    return hw.asHolder(token, needed, request.resource)
  }
}

/**
 * Returns a function that opens the engine at its first call, and resolves to the same engine at each further
 * one. The next call tries again if opening failed or the engine was closed, so a failure is not kept: a
 * directory that is still locked by the previous deployment, or a database that is down. Throws `invalid`
 * unless it gets a function.
 *
 * ```ts
 * const engine = openOnce(() => open({ storage: memory() }))
 * const handler = createHandler(engine)
 * const chat = (await engine()).basin('my-app').stream('chat')
 * ```
 */
export function openOnce(openEngine: () => Promise<Engine>): () => Promise<Engine> {
  assertOpens(openEngine, 'openOnce')
  let opened: Promise<Engine> | undefined
  return () => {
    if (opened !== undefined) return opened
    const opening = Promise.resolve().then(openEngine)
    const forget = () => {
      if (opened === opening) opened = undefined
    }
    opened = opening
    opening.then((hw) => onAbort(hw.closing, forget)).catch(forget)
    return opening
  }
}

/** Throws `invalid` unless the value is a function. `name` is that of the function that needs it. */
export function assertOpens(openEngine: unknown, name: string): void {
  if (typeof openEngine === 'function') return
  throw invalid(`${name} needs a function: \`${name}(() => open({ storage }))\``, 'openEngine')
}

/** `GET` also serves `HEAD`, unless that has a method of its own. */
function methodOf({ target }: RouteMatch<Methods>, name: string): Method | undefined {
  if (Object.hasOwn(target, name)) return target[name]
  return name === 'HEAD' ? target.GET : undefined
}

function methodNotAllowed({ target }: RouteMatch<Methods>): Reply {
  const names = Object.keys(target).filter((name) => name !== 'HEAD')
  const allow = names.flatMap((name) => (name === 'GET' ? ['GET', 'HEAD'] : name)).join(', ')
  return rejection(405, 'method_not_allowed', `this path supports only ${allow}`, { allow })
}

function assertEngine(hw: Engine): Engine {
  if (typeof hw?.onConnection === 'function') return hw
  const example = '`createHandler(await open({ storage }))`'
  throw invalid(`a handler needs an open engine: ${example}${mistakeIn(hw)}`, 'hw')
}

/**
 * Adds CORS headers and the identity of the stream that was used, and compresses a body that is long enough
 * if `Accept-Encoding` allows it. Streams are not compressed. For `HEAD`, the body is left out.
 */
function finishReply(
  reply: Reply,
  exchange: RequestExchange,
  settings: HandlerSettings,
  streamId?: string | undefined,
): MaybePromise<Reply> {
  const { allowedOrigins, commonHeaders, exposedHeaders } = settings
  const { status, body } = reply
  const headers: Record<string, string> = { ...commonHeaders, ...reply.headers }
  if (streamId !== undefined) headers[STREAM_ID_HEADER] = streamId
  // Errors need them too: without them, a page cannot even read the status.
  if (allowedOrigins.length > 0) {
    Object.assign(headers, corsHeaders(exchange, allowedOrigins, exposedHeaders))
  }
  const plain = withExpectedStatus({ status, headers, body }, exchange)
  const isWhole = typeof body === 'string' || body instanceof Uint8Array
  const isLong = isWhole && body.length > RESPONSE_COMPRESSION_BYTES_MIN
  const finished = isLong ? compressed(plain, body, exchange, settings) : plain
  return exchange.method === 'HEAD' ? withoutBody(finished) : finished
}

/** The statuses that a client expects, as of a stream that does not exist yet. */
const EXPECTED_STATUSES = [404, 409, 412, 416]

/**
 * Moves an expected status into a header if the request asks for that. The failure must not be stored as the
 * success that it looks like then, nor serve a request that does not ask.
 */
function withExpectedStatus(reply: Reply, exchange: RequestExchange): Reply {
  const { status, headers, body } = reply
  if (!EXPECTED_STATUSES.includes(status) || exchange.header(STATUS_HEADER) === undefined) return reply
  const uncached = {
    ...headers,
    [STATUS_HEADER]: String(status),
    'cache-control': 'no-store',
    vary: varyOf(headers, STATUS_HEADER),
  }
  return { status: 200, headers: uncached, body }
}

/** The header `vary` of a reply that depends on one more header of the request. */
function varyOf(headers: Reply['headers'], name: string): string {
  return headers?.vary === undefined ? name : `${headers.vary}, ${name}`
}

async function withoutBody(reply: MaybePromise<Reply>): Promise<Reply> {
  const { status, headers, body } = await reply
  if (body === undefined) return { status, headers }
  const content = typeof body === 'string' ? utf8(body) : body
  if (content instanceof Uint8Array) {
    return { status, headers: { ...headers, 'content-length': String(content.length) } }
  }
  // Ends the session whose headers are all that was asked for.
  await content[Symbol.asyncIterator]().return?.()
  return { status, headers }
}

/** Compresses the body if the client and the options allow it. */
function compressed(
  reply: Reply,
  body: string | Uint8Array,
  exchange: RequestExchange,
  settings: HandlerSettings,
): MaybePromise<Reply> {
  // Next sends the body of a route handler without its `content-encoding`, and compresses it itself. Its
  // requests have a `nextUrl`.
  if (!settings.compression || 'nextUrl' in exchange.source) return reply
  const headers = { ...reply.headers, vary: varyOf(reply.headers, 'accept-encoding') }
  const coding = responseCodingOf(exchange.header('accept-encoding') ?? null)
  if (coding === undefined) return { ...reply, headers }
  return compress(coding, typeof body === 'string' ? utf8(body) : body).then(
    (encoded) => ({ ...reply, headers: { ...headers, 'content-encoding': coding }, body: encoded }),
    (error) => {
      // The codec of this runtime fails; the plain body is still a valid response.
      settings.onError(error, exchange)
      return { ...reply, headers }
    },
  )
}
