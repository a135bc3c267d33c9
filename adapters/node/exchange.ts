import type { EventEmitter } from 'node:events'
import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import type { Http2ServerRequest } from 'node:http2'
import { EMPTY_BYTES } from '../../src/model/bytes.ts'
import { HeadwaterError } from '../../src/model/errors.ts'
import { bodyAlreadyRead, type RequestExchange } from '../http/exchange.ts'
import { http2StreamOf, type NodeRequest, type NodeResponse } from './protocols.ts'

/**
 * The exchange of Node's request and response, over HTTP/1.1 or HTTP/2. Nothing is read or watched before it
 * is asked for.
 */
export class NodeExchange implements RequestExchange {
  readonly source: NodeRequest
  readonly path: string
  readonly query: string
  readonly host: string
  readonly hostname: string
  readonly #headers: IncomingHttpHeaders
  readonly #res: NodeResponse
  #signal: AbortSignal | undefined

  /** Throws 400 `bad_header` for an invalid host, 400 `bad_path` for an invalid target. */
  constructor(req: NodeRequest, res: NodeResponse) {
    this.source = req
    this.#headers = req.headers
    this.#res = res
    const { host, hostname, path, query } = parseTarget(req.url ?? '/', authorityOf(req))
    this.host = host
    this.path = path
    this.query = query
    this.hostname = hostname
  }

  get method(): string {
    return this.source.method ?? 'GET'
  }

  get signal(): AbortSignal {
    this.#signal ??= clientSignal(this.source, this.#res)
    return this.#signal
  }

  get isSecure(): boolean {
    return 'encrypted' in this.source.socket
  }

  get isLoopback(): boolean {
    return LOOPBACK.test(this.source.socket.localAddress ?? '')
  }

  get connection(): object {
    return http2StreamOf(this.#res)?.session ?? this.source.socket
  }

  header(name: string): string | undefined {
    const value = this.#headers[name]
    return Array.isArray(value) ? value.join(', ') : value
  }

  bytesIfReceived(): Uint8Array | undefined {
    const req = this.source
    // Over HTTP/2, `complete` is also true of an aborted request.
    if (http2StreamOf(this.#res) !== undefined || !req.complete || req.destroyed) return undefined
    if (wasRead(req)) throw bodyAlreadyRead()
    const body: Buffer | null = req.read()
    return body === null ? EMPTY_BYTES : plainBytes(body)
  }

  chunks(): AsyncGenerator<Uint8Array, undefined> {
    if (wasRead(this.source)) {
      // Node itself reads the body of an HTTP/2 request that was reset.
      this.signal.throwIfAborted()
      throw bodyAlreadyRead()
    }
    return this.#read()
  }

  async *#read(): AsyncGenerator<Uint8Array, undefined> {
    const req = this.source
    try {
      // The response is sent on the connection of the request, which must outlive a part that was read.
      const chunks: AsyncIterable<Buffer> = req.iterator({ destroyOnReturn: false })
      for await (const chunk of chunks) yield plainBytes(chunk)
      // A reset HTTP/2 stream ends like a complete one.
      if (req.aborted) throw new Error('the request was aborted')
    } catch {
      throw this.signal.aborted ? this.signal.reason : new Error('the request body is truncated')
    } finally {
      req.resume()
    }
  }
}

/**
 * Returns a signal that aborts when the client leaves before it has the whole response: by a reset, or the
 * end of its connection.
 */
function clientSignal(req: NodeRequest, res: NodeResponse): AbortSignal {
  const controller = new AbortController()
  const stream = http2StreamOf(res)
  const outlet = stream ?? (res as ServerResponse)
  const leave = () => {
    // Node ends the response to a stream that was reset without an error.
    if (outlet.writableFinished && !stream?.aborted) return
    controller.abort(new DOMException('The client closed the connection', 'AbortError'))
  }
  outlet.once('close', leave)
  // A stream that is reset while it has much to send emits no `close` yet, nor does a pipelined response that
  // waits for its turn when its connection is lost.
  const emitter: EventEmitter = stream ?? req
  emitter.once('aborted', leave)
  if (outlet.destroyed || req.socket.destroyed) leave()
  return controller.signal
}

/** Whether something else, such as a body parser, has read of the body. */
function wasRead(req: NodeRequest): boolean {
  return req.readableDidRead || req.readableEnded
}

/** A view without the methods of `Buffer`, whose `slice` does not copy. */
function plainBytes(buffer: Buffer): Uint8Array {
  return new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength)
}

const LOOPBACK = /^((::ffff:)?127\.|::1$)/

interface Target {
  readonly host: string
  readonly hostname: string
  readonly path: string
  readonly query: string
}

/**
 * Splits a request target. The path is used as it was sent: a `URL` would resolve dot segments, even encoded
 * ones, and cut at `#`, and the result could be the path of another resource. Such targets are rejected
 * instead.
 */
function parseTarget(target: string, authority: string): Target {
  let host = authority
  let origin = target
  if (!target.startsWith('/') && target !== '*') {
    // RFC 9112, 3.2.2: an absolute target takes precedence over `host`.
    const [, targetHost, rest] = /^https?:\/\/([^/?#@\\]+)((?:[/?].*)?)$/is.exec(target) ?? []
    if (targetHost === undefined || hostnameOf(targetHost) === undefined) throw invalidTarget()
    host = targetHost
    origin = rest!.startsWith('/') ? rest! : `/${rest}`
  }
  const hostname = hostnameOf(host)
  if (hostname === undefined) throw invalidHost('')
  const mark = origin.indexOf('?')
  const path = mark < 0 ? origin : origin.slice(0, mark)
  if (target.includes('#') || DOT_SEGMENT.test(path)) throw invalidTarget()
  return { host, hostname, path, query: mark < 0 ? '' : origin.slice(mark + 1) }
}

const DOT_SEGMENT = /\/(?:\.|%2e){1,2}(?:\/|$)/i

/**
 * Returns the host that a request is sent to. Throws 400 `bad_header` if it names several: of two headers,
 * Node shows the first, and a proxy may have used the other (RFC 9112, 3.2; RFC 9113, 8.3.1).
 */
function authorityOf(req: NodeRequest): string {
  const { host } = req.headers
  const authority = (req as Http2ServerRequest).authority
  if (authority) {
    if (host !== undefined && host.toLowerCase() !== authority.toLowerCase()) {
      throw invalidHost(': differs from `:authority`')
    }
    return authority
  }
  const isHost = (text: string, index: number) =>
    index % 2 === 0 && text.length === 4 && text.toLowerCase() === 'host'
  if (req.rawHeaders.filter(isHost).length > 1) throw invalidHost(': the request has more than one')
  return host || 'localhost'
}

/** The host that was parsed last: most requests have the same one, and a URL takes a while. */
let last: { readonly host: string; readonly hostname: string | undefined } | undefined

/** Returns the name in a host, undefined if it is invalid. */
function hostnameOf(host: string): string | undefined {
  if (last?.host !== host) last = { host, hostname: parseHostname(host) }
  return last.hostname
}

function parseHostname(host: string): string | undefined {
  if (!/^[^\s/?#@\\,]+$/.test(host)) return undefined
  try {
    return new URL(`http://${host}`).hostname
  } catch {
    return undefined
  }
}

function invalidHost(problem: string): HeadwaterError {
  return new HeadwaterError('bad_header', `Invalid header \`host\`${problem}`, { field: 'host' })
}

function invalidTarget(): HeadwaterError {
  return new HeadwaterError('bad_path', 'Invalid request target')
}
