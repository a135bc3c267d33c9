import type { Engine } from '../../src/index.ts'
import { invalid } from '../../src/model/errors.ts'
import type { MembersOf } from '../../src/model/validation.ts'
import { loaded } from '../../src/runtime/loaded.ts'
import type { MaybePromise } from '../../src/runtime/maybe-promise.ts'
import {
  DURABLE_STREAMS_OPTIONS,
  type DurableStreamsOptions,
  durableStreamsSettings,
} from '../durable-streams/options.ts'
import { streamInMountedPath, streamRouter } from '../durable-streams/paths.ts'
import type { HttpCore } from '../http/core.ts'
import type { RequestExchange } from '../http/exchange.ts'
import { LazyHttpCore } from '../http/lazy-core.ts'
import type { HandlerOptions } from '../http/options.ts'
import type { Reply } from '../http/reply.ts'
import type { Router } from '../http/router.ts'
import type { SessionDrain } from '../http/session-drain.ts'

/**
 * The part of a handler that serves the Durable Streams protocol. Tokens, CORS and limits are those of the
 * handler.
 */
export type DurableStreamsMount = Pick<DurableStreamsOptions, 'basin' | 'path' | 'longPollMs' | 'sseMs'>

/** The members of {@link DurableStreamsMount}. */
export const DURABLE_STREAMS_MOUNT: MembersOf<DurableStreamsMount> = {
  basin: DURABLE_STREAMS_OPTIONS.basin,
  path: DURABLE_STREAMS_OPTIONS.path,
  longPollMs: DURABLE_STREAMS_OPTIONS.longPollMs,
  sseMs: DURABLE_STREAMS_OPTIONS.sseMs,
}

/** The methods of {@link HttpCore} that reply to exchanges. */
export type ExchangeHandler = Pick<HttpCore, 'serves' | 'handle'>

/**
 * Serves the second protocol beside the first, whose routes are those of `wire`. Its code is loaded with its
 * first request.
 */
export function withDurableStreams(
  core: ExchangeHandler,
  wire: Pick<Router<unknown>, 'mayServeBelow'>,
  engine: Engine | (() => Promise<Engine>),
  streams: DurableStreamsMount,
  shared: HandlerOptions,
  drain: SessionDrain,
): ExchangeHandler {
  const { auth, getToken, cors, compression, allowedHosts, retention, limits, prefix, onError } = shared
  const common = { auth, getToken, cors, compression, allowedHosts, retention, limits, prefix, onError }
  const given = durableStreamsSettings({ ...common, ...streams })
  const settings = { ...given, http: { ...given.http, drain } }
  if (settings.root === '') throw invalid('`durableStreams.path` must not be `/` here', 'durableStreams.path')
  const { root } = settings
  const mount = settings.http.prefix
  const router = streamRouter(settings.basin, root, undefined)
  // With the default path, no request has to look among the routes of the other protocol.
  const overlaps = wire.mayServeBelow(root) || (mount !== '' && wire.mayServeBelow(mount + root))
  const serves = (path: string) =>
    streamInMountedPath(path, root, mount) !== undefined && !(overlaps && core.serves(path))
  const load = async () => {
    const importing = import('../durable-streams/core.ts')
    const { durableStreamsCore } = await loaded('the code of the Durable Streams protocol', importing)
    if (typeof engine !== 'function') return durableStreamsCore(engine, settings)
    return new LazyHttpCore(engine, settings.http, router, (hw) => durableStreamsCore(hw, settings))
  }
  let loading: Promise<ExchangeHandler> | undefined
  const handle = (exchange: RequestExchange): MaybePromise<Reply> => {
    if (!serves(exchange.path)) return core.handle(exchange)
    loading ??= load().catch((error) => {
      // The next request tries again.
      loading = undefined
      throw error
    })
    return loading.then((own) => own.handle(exchange))
  }
  return { serves: (path) => serves(path) || core.serves(path), handle }
}
