import {
  createServer as createHttpServer,
  type Server as HttpServer,
  type RequestListener,
  type ServerOptions,
} from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { HEADERS_TIMEOUT_MS, KEEP_ALIVE_TIMEOUT_MS, MAX_HEADER_BYTES, TCP_KEEP_ALIVE_MS } from './limits.ts'

/** Certificate (with its chain) and private key in PEM. */
export interface TlsIdentity {
  readonly cert: string | Uint8Array
  readonly key: string | Uint8Array
}

const HTTP1_OPTIONS: ServerOptions = {
  noDelay: true,
  keepAlive: true,
  keepAliveInitialDelay: TCP_KEEP_ALIVE_MS,
  keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
  headersTimeout: HEADERS_TIMEOUT_MS,
  // An upload may last as long as a session does.
  requestTimeout: 0,
  maxHeaderSize: MAX_HEADER_BYTES,
}

/** The server that listens. Under TLS it offers HTTP/2 too, although it does not speak it. */
export function createHttp1Server(
  onRequest: RequestListener,
  tls: TlsIdentity | undefined,
  handshakeTimeout: number,
): HttpServer {
  const server = tls
    ? createHttpsServer(
        { ...HTTP1_OPTIONS, ...forNode(tls), ALPNProtocols: ['h2', 'http/1.1'], handshakeTimeout },
        onRequest,
      )
    : createHttpServer(HTTP1_OPTIONS, onRequest)
  // Answers a client that has half-closed; by default Node drops a response that is not ready then.
  return Object.assign(server, { httpAllowHalfOpen: true })
}

function forNode({ cert, key }: TlsIdentity): { cert: string | Buffer; key: string | Buffer } {
  const buffered = (value: string | Uint8Array) => (typeof value === 'string' ? value : Buffer.from(value))
  return { cert: buffered(cert), key: buffered(key) }
}
