import type { Engine } from '../../src/index.ts'
import { invalid } from '../../src/model/errors.ts'
import { mistakeIn } from '../../src/model/validation.ts'
import type { MaybePromise } from '../../src/runtime/maybe-promise.ts'
import { contentCodingOf } from '../../src/wire/compression.ts'
import { assertAllowedOrigin, preflightReply } from './cors.ts'
import type { RequestExchange } from './exchange.ts'
import { finishReply } from './finish-reply.ts'
import { hostRejection } from './hosts.ts'
import { type OpenSession, openSessions } from './open-sessions.ts'
import type { HandlerSettings } from './options.ts'
import { errorReply, type Reply, rejection } from './reply.ts'
import { ApiRequest, type Method, type Methods } from './request.ts'
import type { RequestRouter } from './router.ts'

/** The reply to a client that has left, which never receives it. */
const CLIENT_LEFT = rejection(499, 'client_hangup', 'the client closed the request')
/** The reply to an unknown path, which it does not repeat: a client may have put a secret into it. */
const NO_ENDPOINT = rejection(404, 'not_found', 'no endpoint has this path')
/** `Headers` joins the values of repeated headers. */
const TWO_HOSTS = rejection(400, 'bad_header', 'Invalid header `host`: the request has more than one')
const SUPPORTED_CODINGS = 'gzip, zstd'
const METRICS = ['account-metrics'] as const

/** Returns the reply of a protocol to an error of a request with this method. */
type ErrorReply = (error: unknown, method: string) => Reply | undefined

/** A protocol over HTTP without a runtime: turns exchanges into replies. */
export class HttpCore {
  readonly #owner: Engine
  /** The engine for exchanges without a connection of their own. */
  readonly #unconnected: Engine
  readonly #settings: HandlerSettings
  readonly #router: RequestRouter<Methods>
  readonly #replyTo: ErrorReply | undefined
  readonly #sessions: Set<OpenSession>

  /**
   * `replyTo` returns the reply to an error, or undefined for one that every protocol reports alike. Throws
   * `invalid` unless `hw` is an engine.
   */
  constructor(
    hw: Engine,
    settings: HandlerSettings,
    router: RequestRouter<Methods>,
    replyTo?: ErrorReply | undefined,
  ) {
    if (typeof hw?.onConnection !== 'function') {
      const example = '`createHandler(await open({ storage }))`'
      throw invalid(`a handler needs an open engine: ${example}${mistakeIn(hw)}`, 'hw')
    }
    this.#owner = hw
    this.#unconnected = hw.onConnection(settings.connection, settings.retention)
    this.#settings = settings
    this.#router = router
    this.#replyTo = replyTo
    this.#sessions = openSessions(hw)
  }

  /** The engine that owns the streams. */
  get engine(): Engine {
    return this.#owner
  }

  /** Returns whether the path belongs to an endpoint. */
  serves(path: string): boolean {
    return this.#router.match(path, this.#settings.prefix) !== undefined
  }

  /** Never throws or rejects: every failure is a reply. */
  handle(exchange: RequestExchange): MaybePromise<Reply> {
    const settings = this.#settings
    if (exchange.host.includes(',')) return finishReply(TWO_HOSTS, exchange, settings)
    const hosts = settings.allowedHosts ?? (settings.auth === 'none' && exchange.isLoopback ? [] : undefined)
    const misdirected = hosts && hostRejection(exchange, hosts, settings.basinDomains)
    if (misdirected) return finishReply(misdirected, exchange, settings)
    const preflight = exchange.method === 'OPTIONS' && preflightReply(exchange, settings.allowedOrigins)
    if (preflight) return preflight
    const match = this.#router.match(exchange.path, settings.prefix)
    if (match === undefined) return finishReply(NO_ENDPOINT, exchange, settings)
    const methods = match.target
    const name = exchange.method
    // `GET` also serves `HEAD`, unless that has a method of its own.
    const isNamed = Object.hasOwn(methods, name)
    const method = isNamed ? methods[name] : name === 'HEAD' ? methods.GET : undefined
    if (method === undefined) {
      const names = Object.keys(methods)
      const allow = names.flatMap((name) => (name === 'GET' ? ['GET', 'HEAD'] : name === 'HEAD' ? [] : name))
      const reply = rejection(405, 'method_not_allowed', `this path supports only ${allow.join(', ')}`, {
        allow: allow.join(', '),
      })
      return finishReply(reply, exchange, settings)
    }
    return this.#call(new ApiRequest(exchange, match, settings, this.#sessions), method)
  }

  async #call(request: ApiRequest, method: Method): Promise<Reply> {
    const { exchange, settings } = request
    let reply: Reply
    let streamId: string | undefined
    try {
      const authorizing = this.#authorize(request, method)
      let hw = authorizing as Engine
      if (authorizing instanceof Promise) {
        hw = await authorizing
        request.caller = hw
      }
      const coding = exchange.header('content-encoding')
      if (coding !== undefined && contentCodingOf(coding) === undefined) {
        const message = `the request body has an unsupported \`content-encoding\`; supported: ${SUPPORTED_CODINGS}`
        reply = rejection(415, 'unsupported_encoding', message, { 'accept-encoding': SUPPORTED_CODINGS })
      } else {
        reply = await method.endpoint(request, hw, this.#owner)
        streamId = request.streamId
      }
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

  /**
   * Returns the engine with the caller's permissions. Rejects with 401 `authn` or 403 `permission_denied`
   * before the body is read, as far as the address of the request names the resource; the engine checks every
   * call again.
   */
  #authorize(request: ApiRequest, { operations }: Method): MaybePromise<Engine> {
    const { auth, allowedOrigins, publicMetrics, retention } = this.#settings
    const { connection } = request.exchange
    const hw = connection === undefined ? this.#unconnected : this.#owner.onConnection(connection, retention)
    const isPublic = operations === 'public' || (operations === 'metrics' && publicMetrics)
    if (auth === 'none' && !isPublic) assertAllowedOrigin(request.exchange, allowedOrigins)
    if (isPublic || auth === 'none') return hw
    const token = this.#settings.getToken(request.exchange)
    const needed = operations === 'metrics' ? METRICS : operations
    return hw.asHolder(token, needed, request.resource)
  }
}
