import { once } from 'node:events'
import type { Server as HttpServer } from 'node:http'
import { createServer as createHttp2Server } from 'node:http2'
import type { AddressInfo, Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { Engine } from '../../src/index.ts'
import { invalid } from '../../src/model/errors.ts'
import {
  assertOptions,
  assertSignal,
  type Check,
  type MembersOf,
  unchecked,
} from '../../src/model/validation.ts'
import { unlessAborted } from '../../src/runtime/abort.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { macrotask } from '../../src/runtime/macrotask.ts'
import { assertRange } from '../http/options.ts'
import { type ConnectionCounts, Connections } from './connections.ts'
import {
  NODE_HANDLER_OPTIONS,
  type NodeHandler,
  type NodeHandlerLimits,
  type NodeHandlerOptions,
  nodeHandlerOf,
} from './handler.ts'
import {
  DURATION_MS_MAX,
  HANDSHAKE_MS,
  HEADERS_MS,
  HTTP2_OPTIONS,
  IDLE_CHECK_MS,
  limitFirstRequest,
  limitSilence,
  SHUTDOWN_GRACE_MS,
  widenConnectionWindow,
} from './limits.ts'
import {
  createHttp1Server,
  detectProtocol,
  handOverToHttp1,
  handOverToHttp2,
  type TlsIdentity,
} from './protocols.ts'

/** The address and the protocols of a server. */
export interface ListenOptions {
  /** Default 0: any free port. */
  readonly port?: number | undefined
  /** Default `127.0.0.1`. */
  readonly host?: string | undefined
  /** Serves `https` with this certificate. */
  readonly tls?: TlsIdentity | undefined
  /** Limits of connections. */
  readonly limits?:
    | {
        /**
         * How long a new connection may take until its protocol is known, including the TLS handshake, in
         * milliseconds. Default 10,000.
         */
        readonly handshakeMs?: number | undefined
        /**
         * How long the headers of an HTTP/1.1 request may take from its first byte, and an HTTP/2 connection
         * until its first request, in milliseconds. Default 20,000; 0 is unlimited.
         */
        readonly headersMs?: number | undefined
      }
    | undefined
}

/** Options of {@link serve}. */
export interface ServeOptions extends NodeHandlerOptions, ListenOptions {
  /** Limits of requests and connections. */
  readonly limits?: (NodeHandlerLimits & NonNullable<ListenOptions['limits']>) | undefined
}

const assertPort: Check = (port, field) => {
  if (Number.isInteger(port) && (port as number) >= 0 && (port as number) <= 65_535) return
  throw invalid(`\`${field}\` must be an integer from 0 to 65535, not ${port}`, field)
}

const SERVE_OPTIONS: MembersOf<ServeOptions> = {
  ...NODE_HANDLER_OPTIONS,
  port: assertPort,
  host: 'string',
  tls: { cert: unchecked, key: unchecked } satisfies MembersOf<TlsIdentity>,
  limits: { ...NODE_HANDLER_OPTIONS.limits, handshakeMs: 'number', headersMs: 'number' },
}

/** A server that listens. */
export interface NodeServer {
  /** The address without a trailing slash: `http://127.0.0.1:8787`. */
  readonly url: string
  /** The host as it was given. */
  readonly host: string
  /** The port that the server listens on. */
  readonly port: number
  /** The address that the server is bound to. */
  readonly address: AddressInfo
  /** Counts what is open now. */
  counts(): ConnectionCounts
  /**
   * Stops accepting, asks clients to leave, ends sessions after a second (`server_draining`), waits up to
   * `graceMs` (10,000 by default, may be infinite) for requests in flight, then drops the rest. Resolves when
   * nothing is open. Later calls return the same promise. `signal` ends the wait of the call, which rejects
   * with its reason, and not what the call began.
   */
  close(options?: {
    readonly graceMs?: number | undefined
    readonly signal?: AbortSignal | undefined
  }): Promise<void>
  /** Closes the server for `await using`. */
  [Symbol.asyncDispose](): Promise<void>
}

/**
 * Serves an engine over HTTP/1.1 and HTTP/2 on one port: without TLS, it detects HTTP/2 with prior knowledge
 * by the first bytes, with TLS it negotiates by ALPN. Rejects with `invalid` for invalid options, and with
 * Node's error if it cannot listen (`EADDRINUSE`, `EACCES`) or use the certificate. Closing the server does
 * not close the engine.
 *
 * ```ts
 * const hw = await open({ storage: filesystem('./data') })
 * const server = await serve(hw, { port: 8787 })
 * console.log(server.url)
 * await server.close()
 * await hw.close()
 * ```
 */
export async function serve(hw: Engine, options: ServeOptions = {}): Promise<NodeServer> {
  const handler = nodeHandlerOf(hw, options, SERVE_OPTIONS)
  return serveHandler(handler, options, handler.drain)
}

/**
 * Serves any request listener in the same way.
 *
 * @param drain Ends its sessions, before the server drops connections after `graceMs`.
 */
export async function serveHandler(
  handler: NodeHandler,
  options: ListenOptions = {},
  drain: (graceMs: number) => Promise<void> = async () => {},
): Promise<NodeServer> {
  const { port = 0, host = '127.0.0.1', tls } = options
  const { handshakeMs = HANDSHAKE_MS, headersMs = HEADERS_MS } = options.limits ?? {}
  assertRange(handshakeMs, 'limits.handshakeMs', 1, DURATION_MS_MAX)
  assertRange(headersMs, 'limits.headersMs', 0, DURATION_MS_MAX)
  const connections = new Connections()
  const onRequest: NodeHandler = (req, res) => {
    connections.requestStarted(req, res)
    if (!req.socket.destroyed) handler(req, res)
  }
  const http1 = createHttp1Server(onRequest, tls, { handshakeMs, headersMs })
  const http2 = createHttp2Server(HTTP2_OPTIONS, onRequest)
  // By itself, Node would also continue a request that was reset at once, which throws and ends the process.
  http2.on('checkContinue', (req, res) => {
    if (!res.stream.destroyed && !res.stream.closed) res.writeContinue()
    onRequest(req, res)
  })
  http2.on('session', (session) => {
    connections.sessionOpened(session)
    limitFirstRequest(session, headersMs)
    limitSilence(session)
    widenConnectionWindow(session)
  })

  const ready = tls ? 'secureConnection' : 'connection'
  const [onHttp1Connection] = http1.listeners(ready) as [(socket: Socket) => void]
  http1.off(ready, onHttp1Connection)
  http1.prependListener('connection', (socket: Socket) => {
    connections.accepted(socket)
    // A connection may fail before its first byte, when nothing else listens to it.
    socket.on('error', () => {})
  })
  http1.on(ready, (socket: Socket | TLSSocket) => {
    socket.on('error', () => {})
    if ('alpnProtocol' in socket && socket.alpnProtocol === 'h2') {
      handOverToHttp2(http2, socket)
      return
    }
    detectProtocol(socket, handshakeMs, connections.stopping, (protocol, received) => {
      // With TLS, HTTP/2 must have been negotiated.
      if (protocol === 'h2' && !tls) handOverToHttp2(http2, socket, received)
      else handOverToHttp1(onHttp1Connection.bind(http1), socket, received)
    })
  })

  http1.listen(port, host)
  await once(http1, 'listening')
  const address = http1.address() as AddressInfo
  let closed: Promise<void> | undefined
  const close: NodeServer['close'] = (options = {}) => {
    assertOptions(options, { graceMs: 'number', signal: assertSignal })
    const { graceMs = SHUTDOWN_GRACE_MS, signal } = options
    closed ??= shutDown(http1, connections, drain, graceMs)
    return unlessAborted(signal, closed)
  }
  return {
    url: `${tls ? 'https' : 'http'}://${urlHost(host)}:${address.port}`,
    host,
    port: address.port,
    address,
    counts: () => connections.counts,
    close,
    [Symbol.asyncDispose]: () => close(),
  }
}

async function shutDown(
  server: HttpServer,
  connections: Connections,
  drain: (graceMs: number) => Promise<void>,
  graceMs: number,
): Promise<void> {
  const cancelEnd = systemClock.schedule(graceMs, () => connections.destroyAll())
  // A response that began before the shutdown leaves an idle connection behind.
  const closingIdle = setInterval(() => server.closeIdleConnections(), IDLE_CHECK_MS)
  try {
    // All connections are the server's, also those that it has handed over to HTTP/2.
    const stopped = new Promise((resolve) => server.close(resolve))
    // Clients are asked to leave first, so that those who reconnect open another connection.
    connections.drain()
    await Promise.all([stopped, drain(graceMs)])
    // The last connections emit `close` a turn or two after their server.
    while (Object.values(connections.counts).some((count) => count > 0)) await macrotask()
  } finally {
    cancelEnd()
    clearInterval(closingIdle)
  }
}

function urlHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return 'localhost'
  return host.includes(':') ? `[${host}]` : host
}
