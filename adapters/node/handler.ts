import type { Engine } from '../../src/index.ts'
import { invalid } from '../../src/model/errors.ts'
import type { Members, MembersOf } from '../../src/model/validation.ts'
import { macrotask } from '../../src/runtime/macrotask.ts'
import type { MaybePromise } from '../../src/runtime/maybe-promise.ts'
import { durableStreamsCore } from '../durable-streams/core.ts'
import {
  DURABLE_STREAMS_MOUNT,
  type DurableStreamsMount,
  durableStreamsSettings,
} from '../durable-streams/options.ts'
import { type EngineSource, HttpCore, openOnce } from '../http/core.ts'
import type { RequestExchange } from '../http/exchange.ts'
import {
  assertRange,
  HANDLER_LIMITS,
  HANDLER_OPTIONS,
  type HandlerLimits,
  type HandlerOptions,
  type HandlerSettings,
  handlerSettings,
} from '../http/options.ts'
import { errorReply, type Reply } from '../http/reply.ts'
import { protocolRouter } from '../http/routes.ts'
import { NodeExchange } from './exchange.ts'
import { DURATION_MS_MAX, LINGER_MS } from './limits.ts'
import { http2StreamOf, type NodeRequest, type NodeResponse } from './protocols.ts'
import { abortResponse, discardUpload, type OpenShare, writeReply } from './reply.ts'

/** Options of {@link toNodeHandler}. */
export interface NodeHandlerOptions extends HandlerOptions {
  /** Limits of requests. */
  readonly limits?: NodeHandlerLimits | undefined
  /**
   * Serves the streams of a basin by the Durable Streams protocol too, below `/v1/stream/` or another `path`.
   * They keep their records forever unless `retention` says otherwise. Not served by default.
   */
  readonly durableStreams?: DurableStreamsMount | undefined
}

/** Limits of a handler on Node. */
export interface NodeHandlerLimits extends HandlerLimits {
  /** How long an upload may continue after its response is complete, in milliseconds. Default 5,000. */
  readonly lingerMs?: number | undefined
}

/** The members of {@link NodeHandlerOptions}. */
export const NODE_HANDLER_OPTIONS = {
  ...HANDLER_OPTIONS,
  limits: { ...HANDLER_LIMITS, lingerMs: 'number' } satisfies MembersOf<NodeHandlerLimits>,
  durableStreams: DURABLE_STREAMS_MOUNT,
} satisfies MembersOf<NodeHandlerOptions>

/** A request listener of Node's HTTP servers, and middleware of frameworks that use `next`. */
export type NodeHandler = (req: NodeRequest, res: NodeResponse, next?: (error?: unknown) => void) => void

/** A handler whose sessions can be ended before a server of your own stops. */
export interface DrainableNodeHandler extends NodeHandler {
  /**
   * Ends all sessions: clients are advised to reconnect, and those that stay get the error `server_draining`
   * after a second. Sessions that begin later are rejected with it. Resolves when none is open, within 2
   * seconds. Call it between `server.close()` and `hw.close()`.
   */
  drain(): Promise<void>
}

/**
 * Returns a handler for Node's `http` and `http2` servers, and for frameworks on top of them:
 *
 * ```ts
 * createServer(toNodeHandler(hw))                     // node:http, node:http2
 * app.use('/streams', toNodeHandler(hw))              // Express, before any body parser
 * ```
 *
 * Instead of an engine, it takes a function that opens one at the first request, as `createHandler` does.
 *
 * With `next`, a request to any other path is passed on; without it, it is 404. Never throws on a request.
 * Throws `invalid` for invalid options.
 */
export function toNodeHandler(
  hw: Engine | (() => Promise<Engine>),
  options: NodeHandlerOptions = {},
): DrainableNodeHandler {
  return nodeHandlerOf(hw, options, NODE_HANDLER_OPTIONS)
}

/** Does the same as {@link toNodeHandler}, for options that may have further members. */
export function nodeHandlerOf(
  hw: EngineSource,
  options: NodeHandlerOptions,
  members: Members,
): DrainableNodeHandler & { drain(graceMs?: number): Promise<void> } {
  const settings = handlerSettings(options, members)
  const { lingerMs = LINGER_MS } = options.limits ?? {}
  assertRange(lingerMs, 'limits.lingerMs', 0, DURATION_MS_MAX)
  // Both protocols have the same engine.
  const source = typeof hw === 'function' ? openOnce(hw) : hw
  const core = new HttpCore(source, settings, protocolRouter(settings))
  const streams = options.durableStreams && durableStreamsBeside(source, options, settings)
  // The routes of the wire protocol take precedence, should the paths overlap.
  const coreOf = (path: string) => (streams?.serves(path) && !core.serves(path) ? streams : core)
  const { drain, onError } = settings
  const handler = nodeHandler((exchange) => coreOf(exchange.path).handle(exchange), {
    serves: (path) => coreOf(path).serves(path),
    openShare: (bytes, end) => core.engine?.openShare(bytes, end),
    lingerMs,
    onError,
  })
  return Object.assign(handler, { drain: (graceMs?: number) => drain.drain(graceMs) })
}

/** Returns the second protocol, with the options that both have in common. */
function durableStreamsBeside(
  hw: EngineSource,
  options: NodeHandlerOptions,
  { drain }: HandlerSettings,
): HttpCore {
  const { auth, getToken, cors, compression, allowedHosts, retention, prefix, onError } = options
  const { lingerMs: _, ...limits } = options.limits ?? {}
  const common = { auth, getToken, cors, compression, allowedHosts, retention, limits, prefix, onError }
  const settings = durableStreamsSettings({ ...common, ...options.durableStreams! })
  if (settings.root === '') throw invalid('`durableStreams.path` must not be `/` here', 'durableStreams.path')
  return durableStreamsCore(hw, { ...settings, http: { ...settings.http, drain } })
}

/** The bridge between Node's objects and a function that replies to exchanges. */
export function nodeHandler(
  handle: (exchange: RequestExchange) => MaybePromise<Reply>,
  options: {
    readonly serves: (path: string) => boolean
    readonly openShare: OpenShare
    readonly lingerMs: number
    readonly onError: (error: unknown, exchange: RequestExchange) => void
  },
): NodeHandler {
  const { serves, openShare, lingerMs, onError } = options

  async function respond(exchange: NodeExchange, req: NodeRequest, res: NodeResponse): Promise<void> {
    if (http2StreamOf(res) === undefined) await endOfTurn()
    try {
      const reply = await handle(exchange)
      discardUpload(req, res, lingerMs)
      await writeReply(exchange, res, reply, openShare)
    } catch (error) {
      if (exchange.signal.aborted) return abortResponse(res)
      onError(error, exchange)
      if (res.headersSent) abortResponse(res)
      else await writeReply(exchange, res, errorReply(error))
    }
  }

  return (req, res, next) => {
    let exchange: NodeExchange
    try {
      exchange = new NodeExchange(req, res)
    } catch (error) {
      if (next) return next()
      discardUpload(req, res, lingerMs)
      const { method = 'GET' } = req
      return void writeReply({ method, signal: NEVER }, res, errorReply(error))
    }
    if (next && !serves(exchange.path)) next()
    else void respond(exchange, req, res)
  }
}

const NEVER = new AbortController().signal

let ending: Promise<void> | undefined

/**
 * Resolves at the end of this turn of the event loop, for all callers together. By then Node has parsed
 * everything that arrived, which usually includes the bodies. Requests that are handled together take half as
 * much time as requests that alternate with the parser.
 */
function endOfTurn(): Promise<void> {
  ending ??= macrotask().then(() => {
    ending = undefined
  })
  return ending
}
