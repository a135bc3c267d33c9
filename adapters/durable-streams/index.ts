/**
 * A handler for the Durable Streams protocol, on the same streams.
 *
 * @packageDocumentation
 */

import type { Engine } from '../../src/index.ts'
import { assertOpens } from '../http/core.ts'
import { fetchHandler } from '../http/fetch-bridge.ts'
import { answerFetchEvents, scopePath } from '../http/service-worker.ts'
import { durableStreamsCore } from './core.ts'
import { type DurableStreamsOptions, durableStreamsSettings } from './options.ts'

export type { DurableStreamsMount, DurableStreamsOptions } from './options.ts'

/**
 * Returns a fetch handler that serves the streams of a basin by the Durable Streams protocol, in any runtime
 * and framework. Each path below `/v1/stream/` is a stream.
 *
 * ```ts
 * const hw = await open({ storage: memory() })
 * const handler = createDurableStreamsHandler(hw, { basin: 'my-app', auth: 'none' })
 * const response = await handler(new Request('http://localhost/v1/stream/chats/42', { method: 'PUT' }))
 * ```
 *
 * The same streams are served over the wire protocol by `createHandler`, and are in `hw.basin('my-app')` in
 * process. Instead of an engine, `hw` may be a function that opens one at the first request. The handler
 * never rejects: every failure is a response. Throws `invalid` for invalid options.
 */
export function createDurableStreamsHandler(
  hw: Engine | (() => Promise<Engine>),
  options: DurableStreamsOptions,
): (request: Request) => Promise<Response> {
  return fetchHandler(durableStreamsCore(hw, durableStreamsSettings(options)))
}

/**
 * Serves the protocol to the pages of a service worker, as `serveFetchEvents` of `headwater/http` serves the
 * wire protocol: an engine in the browser answers their requests to paths below `v1/stream/` of the worker's
 * scope, without a network.
 *
 * ```ts
 * serveDurableStreams(() => open({ storage: indexedDb('my-app') }), { basin: 'my-app', auth: 'none' })
 * ```
 *
 * Call it during the first evaluation of the script, and before `serveFetchEvents` if both are used. The
 * default of `prefix` is the path of the worker's scope. Throws `invalid` for invalid options.
 */
export function serveDurableStreams(openEngine: () => Promise<Engine>, options: DurableStreamsOptions): void {
  assertOpens(openEngine, 'serveDurableStreams')
  const mounted = { ...options, prefix: options?.prefix ?? scopePath() }
  const core = durableStreamsCore(openEngine, durableStreamsSettings(mounted))
  answerFetchEvents((path) => core.serves(path), fetchHandler(core))
}
