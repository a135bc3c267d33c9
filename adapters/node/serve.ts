import type { Server as HttpServer } from 'node:http'
import { createServer as createHttp2Server } from 'node:http2'
import type { AddressInfo, Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { type ConnectionCounts, Connections } from './connections.ts'
import type { FetchHandler } from './fetch-handler.ts'
import { handOverToHttp1, handOverToHttp2 } from './hand-over.ts'
import { createHttp1Server, type TlsIdentity } from './http1-server.ts'
import { HTTP2_OPTIONS, widenConnectionWindow } from './http2-limits.ts'
import { FIRST_BYTES_TIMEOUT_MS, PIPELINED_REQUESTS_MAX, SHUTDOWN_GRACE_MS } from './limits.ts'
import { toNodeListener } from './listener.ts'
import { http2StreamOf } from './node-exchange.ts'
import { sniffProtocol } from './sniff-protocol.ts'

export interface ServeOptions {
  /** Default 0: any free port. */
  readonly port?: number
  /** Default `127.0.0.1`. */
  readonly host?: string
  /** Serves `https`. */
  readonly tls?: TlsIdentity
  /** Told what the handler threw and why a response broke off. Default: `console.error`. */
  readonly onError?: (error: unknown) => void
  /** How long a new connection may take to show which protocol it speaks. Default 10,000. */
  readonly firstBytesTimeoutMs?: number
  /** How long an upload may go on after its response is complete. Default 5,000. */
  readonly lingerMs?: number
}

export interface NodeServer {
  /** Without a slash at the end: `http://127.0.0.1:8787`. */
  readonly url: string
  readonly host: string
  readonly port: number
  readonly address: AddressInfo
  /** What is open at the moment. */
  counts(): ConnectionCounts
  /**
   * Stops accepting, tells the clients, waits up to `graceMs` (default 10,000) for the requests in flight, then drops what is left.
   * Resolves when nothing is open. Calls after the first return the same promise.
   */
  close(options?: { readonly graceMs?: number }): Promise<void>
}

/**
 * Serves a fetch handler over HTTP/1.1 and HTTP/2 on the same port: in plain text told apart by the first bytes, as clients with prior
 * knowledge need it, under TLS by ALPN. Rejects with Node's error when it cannot listen (`EADDRINUSE`, `EACCES`, ...).
 */
export async function serve(handler: FetchHandler, options: ServeOptions = {}): Promise<NodeServer> {
  const { port = 0, host = '127.0.0.1', tls, firstBytesTimeoutMs = FIRST_BYTES_TIMEOUT_MS } = options
  const connections = new Connections()
  const onRequest = toNodeListener(handler, {
    onError: options.onError,
    lingerMs: options.lingerMs,
    isDraining: () => connections.draining,
    onStart: (req, res) => {
      const carrier = http2StreamOf(res) ?? req.socket
      // Node reads on while no response has begun, and would take any number of requests that wait.
      if (connections.requestStarted(carrier) > PIPELINED_REQUESTS_MAX) req.socket.destroy()
      return () => {
        connections.requestEnded(carrier)
        // What a response that began before the end left behind is an idle connection now.
        if (connections.draining) http1.closeIdleConnections()
      }
    },
  })

  const http1 = createHttp1Server(onRequest, tls, firstBytesTimeoutMs)
  const http2 = createHttp2Server(HTTP2_OPTIONS, onRequest)
  http2.on('session', (session) => {
    connections.sessionOpened(session)
    widenConnectionWindow(session)
  })

  const speaks = tls ? 'secureConnection' : 'connection'
  const [speakHttp1] = http1.listeners(speaks) as [(socket: Socket) => void]
  http1.off(speaks, speakHttp1)
  http1.prependListener('connection', (socket: Socket) => {
    connections.accepted(socket)
    // A connection may fail while nobody else listens to it, such as before its first byte.
    socket.on('error', () => {})
  })
  http1.on(speaks, (socket: Socket | TLSSocket) => {
    socket.on('error', () => {})
    if ('alpnProtocol' in socket && socket.alpnProtocol === 'h2') {
      handOverToHttp2(http2, socket)
      return
    }
    const spoke = connections.silent(socket)
    sniffProtocol(socket, firstBytesTimeoutMs, (protocol, received) => {
      spoke()
      // Under TLS, HTTP/2 must have been negotiated.
      if (protocol === 'h2' && !tls) handOverToHttp2(http2, socket, received)
      else handOverToHttp1(speakHttp1.bind(http1), socket, received)
    })
  })

  const address = await listen(http1, port, host)
  let closed: Promise<void> | undefined
  return {
    url: `${tls ? 'https' : 'http'}://${urlHost(host)}:${address.port}`,
    host,
    port: address.port,
    address,
    counts: () => connections.counts,
    close: ({ graceMs = SHUTDOWN_GRACE_MS } = {}) => {
      closed ??= shutDown(http1, connections, graceMs)
      return closed
    },
  }
}

function listen(server: HttpServer, port: number, host: string): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.off('error', reject)
      resolve(server.address() as AddressInfo)
    })
  })
}

async function shutDown(server: HttpServer, connections: Connections, graceMs: number): Promise<void> {
  const timer = setTimeout(() => connections.destroyAll(), graceMs)
  try {
    const stopped = new Promise((resolve) => server.close(resolve))
    await Promise.all([stopped, connections.drain()])
  } finally {
    clearTimeout(timer)
  }
}

function urlHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return 'localhost'
  return host.includes(':') ? `[${host}]` : host
}
