import { trackExternalWork } from '../../src/runtime/clock.ts'
import { isNode } from '../../src/runtime/node.ts'
import type { Upload } from './call.ts'
import { NotDuplex } from './errors.ts'
import type { IncomingResponse, OutgoingRequest } from './exchange.ts'
import type { NodeTransport } from './node/node-transport.ts'
import type { Settings } from './options.ts'

const originalFetch = globalThis.fetch

/**
 * Sends requests: in Node, those of sessions over HTTP/2 and the others by `node:http`, which takes half as
 * long as `fetch`; elsewhere by `fetch`.
 */
export class SessionFetch {
  readonly #settings: Settings
  #node: Promise<NodeTransport> | undefined
  /** The same, once it is loaded. */
  #loaded: NodeTransport | undefined
  #isClosed = false

  constructor(settings: Settings) {
    this.#settings = settings
  }

  /** Resolves to the response to a request that is not one of a session. */
  async unary(request: OutgoingRequest): Promise<IncomingResponse> {
    const usesNode = this.#settings.isRuntimeFetch && isNode()
    const node = usesNode ? (this.#loaded ?? (await this.#loadNode())) : undefined
    return node?.unary(request, originalFetch) ?? this.#settings.fetch(request.toRequest())
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
    this.#node?.then((node) => node.close()).catch(() => {})
  }

  async #overHttp2(request: OutgoingRequest, upload?: Upload): Promise<IncomingResponse | undefined> {
    if (!this.isDuplex || this.#isClosed) return undefined
    return (await this.#loadNode()).overHttp2(request, upload)
  }

  #loadNode(): Promise<NodeTransport> {
    this.#node ??= trackExternalWork(import('./node/node-transport.ts')).then((module) => {
      this.#loaded = new module.NodeTransport(this.#settings)
      return this.#loaded
    })
    return this.#node
  }
}
