import { durableStreamsCore } from '../../adapters/durable-streams/core.ts'
import { type DurableStreamsOptions, durableStreamsSettings } from '../../adapters/durable-streams/options.ts'
import { type NodeHandler, nodeHandler } from '../../adapters/node/handler.ts'
import { LINGER_MS } from '../../adapters/node/limits.ts'
import type { Engine } from '../../src/index.ts'

export const BASIN = 'durable'

/** The protocol on a server of Node. */
export function durableStreamsListener(hw: Engine, options: Partial<DurableStreamsOptions>): NodeHandler {
  const settings = durableStreamsSettings({ basin: BASIN, ...options })
  const core = durableStreamsCore(hw, settings)
  return nodeHandler((exchange) => core.handle(exchange), {
    serves: (path) => core.serves(path),
    openShare: (end) => hw.openShare(end),
    lingerMs: LINGER_MS,
    onError: settings.http.onError,
  })
}
