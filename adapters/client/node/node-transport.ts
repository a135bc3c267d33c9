import { trackExternalWork } from '../../../src/runtime/clock.ts'
import type { Upload } from '../call.ts'
import type { IncomingResponse, OutgoingRequest } from '../exchange.ts'
import { HttpTransport } from './node-http.ts'
import type { Http2Transport } from './node-http2.ts'

/** The transports of Node: requests over `node:http`, sessions over `node:http2`. */
export class NodeTransport {
  readonly #url: string
  readonly #http: HttpTransport
  #http2: Promise<Http2Transport> | undefined

  /** @param settings `compression` allows servers to compress responses. */
  constructor({ url, compression }: { readonly url: string; readonly compression: boolean }) {
    this.#url = url
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
    return http2Transport(new URL(this.#url).origin)
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
