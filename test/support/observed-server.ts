import { HttpCore } from '../../adapters/http/core.ts'
import type { RequestExchange } from '../../adapters/http/exchange.ts'
import { handlerSettings } from '../../adapters/http/options.ts'
import type { Reply } from '../../adapters/http/reply.ts'
import { protocolRouter } from '../../adapters/http/routes.ts'
import { nodeHandler } from '../../adapters/node/handler.ts'
import { LINGER_MS } from '../../adapters/node/limits.ts'
import { type NodeServer, type ServeOptions, serveHandler } from '../../adapters/node/serve.ts'
import type { Engine } from '../../src/index.ts'

/** As `serve`; calls back with each request and with its reply, before that is sent. */
export function serveObserved(
  hw: Engine,
  options: ServeOptions,
  observer: {
    readonly onRequest?: ((exchange: RequestExchange) => void) | undefined
    readonly onReply?: ((exchange: RequestExchange, reply: Reply) => void) | undefined
  },
): Promise<NodeServer> {
  const { port: _port, host: _host, tls: _tls, ...handlerOptions } = options
  const settings = handlerSettings(handlerOptions)
  const core = new HttpCore(hw, settings, protocolRouter(settings))
  const handle = async (exchange: RequestExchange) => {
    observer.onRequest?.(exchange)
    const reply = await core.handle(exchange)
    observer.onReply?.(exchange, reply)
    return reply
  }
  const handler = nodeHandler(handle, {
    serves: () => true,
    openShare: (bytes, end) => hw.openShare(bytes, end),
    lingerMs: LINGER_MS,
    onError: settings.onError,
  })
  return serveHandler(handler, options)
}
