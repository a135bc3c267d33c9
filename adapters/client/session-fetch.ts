import { trackExternalWork } from '../../src/runtime/clock.ts'
import type { Http2Transport } from './node/node-http2.ts'
import { NotDuplex } from './not-duplex.ts'
import type { Settings } from './options.ts'

/** Sends the requests of sessions: over HTTP/2 in Node, and by `fetch` elsewhere. */
export class SessionFetch {
  readonly #settings: Settings
  #loading: Promise<Http2Transport> | undefined
  #isClosed = false

  constructor(settings: Settings) {
    this.#settings = settings
  }

  /** Resolves to the response, of a server without HTTP/2 too. */
  async fetch(request: Request): Promise<Response> {
    return (await this.#overHttp2(request)) ?? this.#settings.fetch(request)
  }

  /**
   * Resolves to the response while the body of the request is still being sent. Rejects with
   * {@link NotDuplex}, before anything was sent, where that is not possible.
   */
  async duplex(request: Request): Promise<Response> {
    const response = await this.#overHttp2(request)
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
    this.#loading?.then((transport) => transport.close()).catch(() => {})
  }

  async #overHttp2(request: Request): Promise<Response | undefined> {
    if (!this.isDuplex || this.#isClosed) return undefined
    this.#loading ??= trackExternalWork(this.#load())
    return (await this.#loading).fetch(request)
  }

  async #load(): Promise<Http2Transport> {
    const { http2Transport } = await import('./node/node-http2.ts')
    return http2Transport(new URL(this.#settings.url).origin)
  }
}

/** Other runtimes have the same modules, but their HTTP/2 differs. */
function isNode(): boolean {
  const { process, Bun, Deno } = globalThis as {
    process?: { release?: { name?: string } }
    Bun?: unknown
    Deno?: unknown
  }
  return process?.release?.name === 'node' && Bun === undefined && Deno === undefined
}
