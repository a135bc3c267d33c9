import type { Agent, ClientRequest, IncomingMessage, RequestOptions } from 'node:http'
import { type Clock, trackExternalWork } from '../../../src/runtime/clock.ts'
import type { Upload } from '../call.ts'
import type { IncomingResponse, OutgoingRequest } from '../exchange.ts'
import type { Settings } from '../options.ts'
import type { Http2Transport } from './node-http2.ts'
import { incomingResponse, StreamReader } from './stream-reader.ts'

/** The transports of Node: requests over `node:http`, sessions over `node:http2`. */
export class NodeTransport {
  readonly #url: string
  readonly #clock: Clock
  readonly #http: HttpTransport
  #http2: Promise<Http2Transport> | undefined

  /** @param settings `compression` allows servers to compress responses. */
  constructor({ url, clock, compression }: Pick<Settings, 'url' | 'clock' | 'compression'>) {
    this.#url = url
    this.#clock = clock
    this.#http = new HttpTransport(url, compression)
  }

  /** Returns undefined if the program has replaced `fetch`, which is to be used then. */
  unary(request: OutgoingRequest, originalFetch: typeof fetch): Promise<IncomingResponse> | undefined {
    return usesRuntimeFetch(originalFetch) ? this.#http.send(request) : undefined
  }

  /** Resolves to undefined, before anything was sent, if the server does not speak HTTP/2. */
  async overHttp2(request: OutgoingRequest, upload?: Upload): Promise<IncomingResponse | undefined> {
    this.#http2 ??= trackExternalWork(this.#loadHttp2())
    return (await this.#http2).fetch(request, upload)
  }

  /** Ends all connections. */
  close(): void {
    this.#http.close()
    this.#http2?.then((transport) => transport.close()).catch(() => {})
  }

  async #loadHttp2(): Promise<Http2Transport> {
    const { http2Transport } = await import('./node-http2.ts')
    return http2Transport(new URL(this.#url).origin, this.#clock)
  }
}

/**
 * Whether the program has left `fetch` as it is, and has not set a dispatcher for it, such as one for a
 * proxy.
 */
function usesRuntimeFetch(originalFetch: typeof fetch): boolean {
  const dispatcher = (globalThis as Record<symbol, unknown>)[Symbol.for('undici.globalDispatcher.1')]
  const isDefault = dispatcher === undefined || dispatcher?.constructor.name === 'Agent'
  return isDefault && globalThis.fetch === originalFetch
}

// Not imports, which bundlers for browsers could not resolve. Loaded in Node only.
const http = process.getBuiltinModule('node:http')
const https = process.getBuiltinModule('node:https')
const { createGunzip } = process.getBuiltinModule('node:zlib')
const { urlToHttpOptions } = process.getBuiltinModule('node:url')

/** How long an idle connection is kept: less than servers do, which close it after 5 seconds or more. */
const IDLE_MS = 4_000

/** Sends requests over connections of HTTP/1.1 that are kept. */
class HttpTransport {
  readonly #compression: boolean
  readonly #request: typeof http.request
  readonly #agent: Agent
  /** The server, which Node would parse for each request. */
  readonly #server: RequestOptions
  readonly #originLength: number

  /**
   * @param url The address of the server, which those of all requests begin with.
   * @param compression Whether responses may be compressed.
   */
  constructor(url: string, compression: boolean) {
    const parsed = new URL(url)
    const { protocol, hostname, port } = urlToHttpOptions(parsed)
    const { request, Agent } = protocol === 'https:' ? https : http
    this.#compression = compression
    this.#request = request
    this.#agent = new Agent({ keepAlive: true, timeout: IDLE_MS })
    this.#server = { protocol, hostname, port }
    this.#originLength = parsed.origin.length
  }

  /** Resolves to the response. Rejects with the error of the connection, or the reason of the signal. */
  send({ method, url, headers, body, signal }: OutgoingRequest): Promise<IncomingResponse> {
    const { protocol, hostname, port } = this.#server
    const options: RequestOptions = {
      protocol,
      hostname,
      port,
      path: url.slice(this.#originLength),
      method,
      headers: this.#headersOf(headers, body),
      agent: this.#agent,
    }
    return new Promise((resolve, reject) => {
      const sent = this.#request(options)
      const abort = () => sent.destroy(signal.reason)
      // Aborted at the end of every exchange, which does nothing to a complete response.
      signal.addEventListener('abort', abort, { once: true })
      sent.once('response', (response) => resolve(responseOf(response, sent)))
      sent.on('error', reject)
      sent.end(body)
    })
  }

  /** Ends the idle connections. */
  close(): void {
    this.#agent.destroy()
  }

  #headersOf(headers: OutgoingRequest['headers'], body: Uint8Array | undefined): Record<string, string> {
    return {
      ...headers,
      ...(body !== undefined && { 'content-length': String(body.length) }),
      ...(this.#compression && { 'accept-encoding': 'gzip' }),
    }
  }
}

function responseOf(response: IncomingMessage, sent: ClientRequest): IncomingResponse {
  const { statusCode = 0, headers } = response
  const isCut = () => !response.complete
  // Keeps the connection for other requests if the response is complete.
  const cancel = () => void (response.complete || sent.destroy())
  const isCompressed = headers['content-encoding'] === 'gzip'
  const body = isCompressed ? response.pipe(createGunzip()) : response
  // A pipe does not pass errors on.
  if (isCompressed) response.on('error', (error) => body.destroy(error))
  return incomingResponse(statusCode, headers, new StreamReader(body, isCut, cancel))
}
