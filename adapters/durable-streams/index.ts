import type { Engine } from '../../src/index.ts'
import { fetchHandler } from '../http/fetch-bridge.ts'
import { durableStreamsCore } from './core.ts'
import { type DurableStreamsOptions, durableStreamsSettings } from './options.ts'

export type { DurableStreamsOptions } from './options.ts'

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
 * They are the streams that `createHandler` serves by the wire protocol, and `hw.basin('my-app')` in process:
 * append with one, follow with the other. The handler never rejects: every failure is a response. Throws
 * `invalid` for invalid options.
 */
export function createDurableStreamsHandler(
  hw: Engine,
  options: DurableStreamsOptions,
): (request: Request) => Promise<Response> {
  return fetchHandler(durableStreamsCore(hw, durableStreamsSettings(options)))
}
