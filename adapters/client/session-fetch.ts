import { trackExternalWork } from '../../src/runtime/clock.ts'
import { isNode } from '../../src/runtime/node.ts'
import type { Upload } from './call.ts'
import { NotDuplex } from './errors.ts'
import type { IncomingResponse, OutgoingRequest } from './exchange.ts'
import type { Http2Transport } from './node/node-http2.ts'
import type { Settings } from './options.ts'

/**
 * Sends the requests of sessions: over HTTP/2 in Node, whose `fetch` has one direction at a time, else by
 * `fetch`.
 */
export class SessionFetch {
  readonly #settings: Settings
  #http2: Promise<Http2Transport> | undefined
  #isClosed = false

  constructor(settings: Settings) {
    this.#settings = settings
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
    this.#http2?.then((transport) => transport.close()).catch(() => {})
  }

  async #overHttp2(request: OutgoingRequest, upload?: Upload): Promise<IncomingResponse | undefined> {
    if (!this.isDuplex || this.#isClosed) return undefined
    this.#http2 ??= trackExternalWork(this.#load())
    return (await this.#http2).fetch(request, upload)
  }

  async #load(): Promise<Http2Transport> {
    const { http2Transport } = await import('./node/node-http2.ts')
    const { url, clock } = this.#settings
    return http2Transport(new URL(url).origin, clock)
  }
}
