import { trackExternalWork } from '../../src/runtime/clock.ts'
import type { Upload } from './call.ts'
import type { IncomingResponse, OutgoingRequest } from './exchange.ts'
import type { HttpTransport } from './node/node-http.ts'
import type { Http2Transport } from './node/node-http2.ts'
import { NotDuplex } from './not-duplex.ts'
import type { Settings } from './options.ts'

const originalFetch = globalThis.fetch

/**
 * Sends requests: in Node, those of sessions over HTTP/2 and the others by `node:http`, which takes half as
 * long as `fetch`; elsewhere by `fetch`.
 */
export class SessionFetch {
  readonly #settings: Settings
  #loading: Promise<Http2Transport> | undefined
  #http: HttpTransport | undefined
  #isClosed = false

  constructor(settings: Settings) {
    this.#settings = settings
  }

  /** Resolves to the response to a request that is not one of a session. */
  async unary(request: OutgoingRequest): Promise<IncomingResponse> {
    const { isRuntimeFetch } = this.#settings
    if (!isRuntimeFetch || !isNode() || !usesRuntimeFetch()) return this.#settings.fetch(request.toRequest())
    if (this.#http === undefined) {
      const { HttpTransport } = await trackExternalWork(import('./node/node-http.ts'))
      this.#http ??= new HttpTransport(this.#settings.compression)
    }
    return this.#http.send(request)
  }

  /** Resolves to the response, of a server without HTTP/2 too. */
  async fetch(request: OutgoingRequest): Promise<IncomingResponse> {
    return (await this.#overHttp2(request)) ?? this.#settings.fetch(request.toRequest())
  }

  /**
   * Resolves to the response while the body of the request is still being sent. Rejects with
   * {@link NotDuplex}, before anything was sent, where that is not possible.
   */
  async duplex(request: OutgoingRequest, upload: Upload): Promise<IncomingResponse> {
    const response = await this.#overHttp2(request, upload)
    if (response === undefined) throw new NotDuplex()
    return response
  }

  /** Whether the runtime has `duplex`, which a server may lack. */
  get isDuplex(): boolean {
    return this.#settings.http2 && isNode()
  }

  /** Ends all connections. */
  close(): void {
    this.#isClosed = true
    this.#http?.close()
    this.#loading?.then((transport) => transport.close()).catch(() => {})
  }

  async #overHttp2(request: OutgoingRequest, upload?: Upload): Promise<IncomingResponse | undefined> {
    if (!this.isDuplex || this.#isClosed) return undefined
    this.#loading ??= trackExternalWork(this.#load())
    return (await this.#loading).fetch(request, upload)
  }

  async #load(): Promise<Http2Transport> {
    const { http2Transport } = await import('./node/node-http2.ts')
    return http2Transport(new URL(this.#settings.url).origin)
  }
}

/**
 * Whether the program has left `fetch` as it is, and has not set a dispatcher for it, such as one for a
 * proxy.
 */
function usesRuntimeFetch(): boolean {
  const dispatcher = (globalThis as Record<symbol, unknown>)[Symbol.for('undici.globalDispatcher.1')]
  const isDefault = dispatcher === undefined || dispatcher?.constructor.name === 'Agent'
  return isDefault && globalThis.fetch === originalFetch
}

/** Other runtimes have the same modules, but their HTTP/2 differs. */
function isNode(): boolean {
  const { process, Bun, Deno } = globalThis as {
    process?: { release?: { name?: string | undefined } | undefined } | undefined
    Bun?: unknown
    Deno?: unknown
  }
  return process?.release?.name === 'node' && Bun === undefined && Deno === undefined
}
