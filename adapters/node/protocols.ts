import {
  createServer,
  type Server as HttpServer,
  type IncomingMessage,
  type RequestListener,
  type ServerOptions,
  type ServerResponse,
} from 'node:http'
import type { Http2Server, Http2ServerRequest, Http2ServerResponse, ServerHttp2Stream } from 'node:http2'
import { createServer as createHttpsServer } from 'node:https'
import type { Socket } from 'node:net'
import { type AnySignal, onAbort } from '../../src/runtime/abort.ts'
import { HTTP1_OPTIONS } from './limits.ts'

/** A request of Node's HTTP/1.1 or HTTP/2 server. */
export type NodeRequest = IncomingMessage | Http2ServerRequest
export type NodeResponse = ServerResponse | Http2ServerResponse

/** Returns the HTTP/2 stream of a response; undefined over HTTP/1.1. */
export function http2StreamOf(res: NodeResponse): ServerHttp2Stream | undefined {
  return 'stream' in res ? res.stream : undefined
}

/** A certificate and its private key, in PEM. */
export interface TlsIdentity {
  /** The certificate, followed by its chain. */
  readonly cert: string | Uint8Array
  /** The private key. */
  readonly key: string | Uint8Array
}

/**
 * Creates the server that listens. With TLS it also negotiates HTTP/2, although it does not speak it itself.
 */
export function createHttp1Server(
  onRequest: RequestListener,
  tls: TlsIdentity | undefined,
  { handshakeMs: handshakeTimeout, headersMs }: { readonly handshakeMs: number; readonly headersMs: number },
): HttpServer {
  const options: ServerOptions = {
    ...HTTP1_OPTIONS,
    headersTimeout: Math.ceil(headersMs),
    // By default Node looks for late headers every 30 seconds, which adds up to as much to the limit.
    connectionsCheckingInterval: Math.max(1, Math.ceil(headersMs / 20)),
  }
  return tls
    ? createHttpsServer(
        { ...options, ...pem(tls), ALPNProtocols: ['h2', 'http/1.1'], handshakeTimeout },
        onRequest,
      )
    : createServer(options, onRequest)
}

function pem({ cert, key }: TlsIdentity): { cert: string | Buffer; key: string | Buffer } {
  const buffered = (value: string | Uint8Array) => (typeof value === 'string' ? value : Buffer.from(value))
  return { cert: buffered(cert), key: buffered(key) }
}

// RFC 9113, 3.4: no HTTP/1.1 server takes it for a request.
const HTTP2_PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')

/**
 * Distinguishes HTTP/2 with prior knowledge from HTTP/1.1 by the first bytes, however they are split, and
 * calls back with all bytes read so far. Destroys a connection whose protocol is not known in time, or when
 * the server stops.
 */
export function detectProtocol(
  socket: Socket,
  timeoutMs: number,
  stopping: AnySignal,
  onDetected: (protocol: 'http/1.1' | 'h2', received: Buffer) => void,
): void {
  let received: Buffer = Buffer.alloc(0)

  const drop = () => socket.destroy()
  const timer = setTimeout(drop, timeoutMs)
  const ignoreStop = onAbort(stopping, drop)
  const stop = () => {
    clearTimeout(timer)
    ignoreStop()
    socket.off('readable', onReadable)
    socket.off('end', drop)
    socket.off('close', stop)
  }
  const onReadable = () => {
    // Exactly what is buffered: reading more makes a half-closed socket emit `end` before its bytes are used.
    const chunk: Buffer | null = socket.read(socket.readableLength)
    if (chunk) received = received.length === 0 ? chunk : Buffer.concat([received, chunk])
    // Nothing is buffered at the end, and this read makes the socket emit `end`.
    else socket.read()
    const length = Math.min(received.length, HTTP2_PREFACE.length)
    if (length === 0) return
    const looksLikePreface = received.compare(HTTP2_PREFACE, 0, length, 0, length) === 0
    if (looksLikePreface && length < HTTP2_PREFACE.length) return
    stop()
    onDetected(looksLikePreface ? 'h2' : 'http/1.1', received)
  }

  socket.on('readable', onReadable).once('end', drop).once('close', stop)
}

/** Passes a socket, of which `received` has been read, to an HTTP/2 server. */
export function handOverToHttp2(server: Http2Server, socket: Socket, received?: Buffer): void {
  // Half-closing is for HTTP/1.1: an HTTP/2 session would not notice that its client has left.
  socket.allowHalfOpen = false
  if (received) socket.unshift(received)
  server.emit('connection', socket)
}

/** Passes a socket, of which `received` has been read, to the connection listener of an HTTP/1.1 server. */
export function handOverToHttp1(listener: (socket: Socket) => void, socket: Socket, received: Buffer): void {
  listener(socket)
  // With `unshift`, bytes that fill the buffer of a request while the socket is about to resume make Node
  // lose the pause that follows, and with it all back-pressure of the upload. Nothing else has been read when
  // `resume` is emitted.
  socket.once('resume', () => socket.emit('data', received))
  socket.resume()
}
