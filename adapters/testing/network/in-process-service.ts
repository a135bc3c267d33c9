import type { Handler } from './faulty-handler.ts'
import { replaceFetch } from './fetch-layers.ts'
import { fetchFailed } from './network-errors.ts'
import { type FetchClient, type FetchClientOptions, overFetch } from './published-client.ts'
import { relayedResponse } from './relayed-response.ts'

export interface InProcessServiceOptions {
  /** What the client presents as its access token. By default one that only a handler takes that is `open`. */
  readonly accessToken?: string
}

/** A service at an address that does not exist, see {@link inProcessService}. */
export interface InProcessService extends Disposable, AsyncDisposable {
  /** `http://` and a host of its own. Where a client asks for an endpoint. */
  readonly url: string
  /** Options of the published client's `S2`: token, endpoints, and repetitions without a pause. */
  readonly clientOptions: FetchClientOptions
  /** Options of its `basin.stream(name, options)`: sessions over `fetch`, for those over HTTP/2 need a socket. */
  readonly streamOptions: { readonly forceTransport: 'fetch' }
  /**
   * The published client at this service: `service.connect(S2)`. It is the class that is given, so this package needs no copy of it; each stream of the client has its sessions
   * over `fetch`. Options go before {@link clientOptions}, those of `retry` one by one.
   */
  connect<Client extends FetchClient, Options extends object>(
    Client: new (options: Options) => Client,
    options?: Partial<Options>,
  ): Client
  /** Requests in flight fail, responses break off, and `globalThis.fetch` is what it was before. A second call does nothing. */
  close(): void
}

let services = 0

/**
 * Puts a handler where `fetch` finds it, without a socket: until `close`, requests of `globalThis.fetch` to {@link InProcessService.url} are handed to it, and all others go where they went
 * before. Several may be there at once, each with an address of its own, and may be closed in any order.
 *
 * ```ts
 * const service = inProcessService(createHandler(hw, { open: true }))
 * const s2 = service.connect(S2)
 * // ...
 * service.close()
 * ```
 */
export function inProcessService(handler: Handler, options: InProcessServiceOptions = {}): InProcessService {
  // No name server knows `.invalid`, and no `fetch` connects to port 1: what comes too late touches no network.
  const url = `http://headwater-${++services}.invalid:1`
  /** What is under way, with every request that its abort comes through: one that nobody holds passes nothing on in Node. */
  const exchanges = new Map<AbortController, readonly unknown[]>()
  let isOpen = true

  async function answer(input: RequestInfo | URL, init: RequestInit | undefined): Promise<Response> {
    const request = new Request(input, init)
    const exchange = new AbortController()
    const { signal } = exchange
    const onAbort = () => exchange.abort(request.signal.reason)
    const end = () => {
      request.signal.removeEventListener('abort', onAbort)
      exchanges.delete(exchange)
    }
    request.signal.throwIfAborted()
    const handed = new Request(request, { signal, headers: sentHeaders(request) })
    request.signal.addEventListener('abort', onAbort, { once: true })
    exchanges.set(exchange, [input, request, handed])
    try {
      const response = await abandonable(handler, handed)
      return relayedResponse(response, { signal, onEnd: end })
    } catch (error) {
      end()
      throw error
    }
  }

  const restore = replaceFetch((next) => async (input, init) => {
    if (originOf(input) !== url) return next(input, init)
    return answer(input, init)
  })
  const close = () => {
    if (!isOpen) return
    isOpen = false
    restore()
    for (const exchange of [...exchanges.keys()]) {
      exchange.abort(fetchFailed('ECONNRESET', `the service at ${url} was closed`))
    }
  }
  const clientOptions: FetchClientOptions = {
    accessToken: options.accessToken ?? 'in-process',
    endpoints: { account: url, basin: url },
    retry: { minBaseDelayMillis: 0, maxBaseDelayMillis: 0 },
  }
  return {
    url,
    clientOptions,
    streamOptions: { forceTransport: 'fetch' },
    connect: (Client, more: { readonly retry?: object } = {}) => {
      const retry = { ...clientOptions.retry, ...more.retry }
      return overFetch(new Client({ ...clientOptions, ...more, retry } as never))
    },
    close,
    [Symbol.dispose]: close,
    [Symbol.asyncDispose]: async () => close(),
  }
}

function originOf(input: RequestInfo | URL): string | undefined {
  const href = input instanceof Request ? input.url : String(input)
  return URL.canParse(href) ? new URL(href).origin : undefined
}

/** There is no line on which compression would save anything, and nobody who would decompress what comes. */
function sentHeaders(request: Request): Headers {
  const headers = new Headers(request.headers)
  headers.delete('accept-encoding')
  return headers
}

/** Not every handler heeds the signal of its request, and `fetch` does. */
function abandonable(handler: Handler, request: Request): Promise<Response> {
  const { signal } = request
  return new Promise((resolve, reject) => {
    const abandon = () => reject(signal.reason)
    signal.addEventListener('abort', abandon, { once: true })
    Promise.resolve(handler(request))
      .then((response) => {
        // Nobody gets what comes too late.
        if (signal.aborted) response.body?.cancel().catch(() => {})
        resolve(response)
      }, reject)
      .finally(() => signal.removeEventListener('abort', abandon))
  })
}
