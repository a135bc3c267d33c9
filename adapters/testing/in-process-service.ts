import { invalid } from '../../src/model/errors.ts'
import { assertOptions, type MembersOf } from '../../src/model/validation.ts'
import { unlessAborted } from '../../src/runtime/abort.ts'
import type { Handler } from './faulty-handler.ts'
import { fetchFailed, relayedResponse } from './relayed-response.ts'

/** Options of `inProcessService`. */
export interface InProcessServiceOptions {
  /** The access token of the client. The default works only with a handler that has `auth: 'none'`. */
  readonly accessToken?: string | undefined
}

/** A service without a socket, created by {@link inProcessService}. */
export interface InProcessService extends Disposable, AsyncDisposable {
  /** The unique URL of the service, for clients that need an endpoint. */
  readonly url: string
  /**
   * Creates a published client of this service: `service.connect(S2)`. Takes the class, so that this package
   * does not depend on it. Sessions of the client use `fetch`, because HTTP/2 needs a socket, and retries do
   * not pause. Options override the token, the endpoints and the members of `retry`.
   */
  connect<Client extends FetchClient, Options extends object>(
    Client: new (options: Options) => Client,
    options?: Partial<Options>,
  ): Client
  /** Fails requests and responses in flight and restores `globalThis.fetch`. A second call has no effect. */
  close(): void
}

let services = 0

/**
 * Makes a handler reachable through `fetch` without a socket: until `close`, `globalThis.fetch` passes
 * requests for {@link InProcessService.url} to it, and all others to the network. Several services can be
 * open at the same time and can be closed in any order. Code that replaces `fetch` while one is open must
 * forward to what it replaces.
 *
 * ```ts
 * import { S2 } from '@s2-dev/streamstore'
 *
 * const service = inProcessService(createHandler(hw, { auth: 'none' }))
 * const s2 = service.connect(S2)
 * for await (const basin of s2.basins.listAll()) console.log(basin.name)
 * service.close()
 * ```
 */
export function inProcessService(handler: Handler, options: InProcessServiceOptions = {}): InProcessService {
  assertOptions(options, { accessToken: 'string' } satisfies MembersOf<InProcessServiceOptions>)
  if (typeof handler !== 'function') throw invalid('inProcessService needs a handler, a function', 'handler')
  // `.invalid` never resolves, and `fetch` refuses port 1, so a request after `close` does not reach the
  // network.
  const url = `http://headwater-${++services}.invalid:1`
  /**
   * Exchanges in progress, with the requests whose signals forward an abort: in Node, the signal of a
   * collected request never aborts.
   */
  const exchanges = new Map<AbortController, readonly unknown[]>()
  let isOpen = true

  async function respond(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
    const request = new Request(input, init)
    const exchange = new AbortController()
    const { signal } = exchange
    const onAbort = () => exchange.abort(request.signal.reason)
    const end = () => {
      request.signal.removeEventListener('abort', onAbort)
      exchanges.delete(exchange)
    }
    request.signal.throwIfAborted()
    const received = new Request(request, { signal, headers: sentHeaders(request) })
    request.signal.addEventListener('abort', onAbort, { once: true })
    exchanges.set(exchange, [input, request, received])
    try {
      // Rejects when the request is aborted, as `fetch` does, even if the handler ignores the signal.
      const responding = Promise.resolve(handler(received))
      const response = await unlessAborted(signal, responding, ({ body }) => body?.cancel())
      return relayedResponse(response, { signal, onEnd: end })
    } catch (error) {
      end()
      throw error
    }
  }

  const restore = interceptFetch(url, respond)
  const close = () => {
    if (!isOpen) return
    isOpen = false
    restore()
    for (const exchange of [...exchanges.keys()]) {
      exchange.abort(fetchFailed('ECONNRESET', `the service at ${url} was closed`))
    }
  }
  return {
    url,
    connect: (Client, more: { readonly retry?: object | undefined } = {}) => {
      const { accessToken = 'in-process' } = options
      const retry = { minBaseDelayMillis: 0, maxBaseDelayMillis: 0, ...more.retry }
      const endpoints = { account: url, basin: url }
      return useFetchTransport(new Client({ accessToken, endpoints, ...more, retry } as never))
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

/**
 * Removes `accept-encoding`: in process, compression saves nothing, and the response would not be
 * decompressed.
 */
function sentHeaders(request: Request): Headers {
  const headers = new Headers(request.headers)
  headers.delete('accept-encoding')
  return headers
}

/** The part of the published client's `S2` that selects `fetch` for its sessions. */
export interface FetchClient {
  /** Returns the handle of a basin. */
  basin(name: string): { stream: (name: string, options?: { forceTransport?: never }) => unknown }
}

/** Makes the sessions of a client use `fetch`, never HTTP/2. Returns the client. */
function useFetchTransport<Client extends FetchClient>(client: Client): Client {
  const basin = client.basin.bind(client)
  client.basin = (name: string) => {
    const handle = basin(name)
    const stream = handle.stream.bind(handle)
    handle.stream = (name, options) => stream(name, { ...options, forceTransport: 'fetch' as never })
    return handle
  }
  return client
}

type Fetch = typeof globalThis.fetch

/** The open services, by their URL. */
const open = new Map<string, Fetch>()
/** The function in place of `globalThis.fetch`, and the property before, undefined if it was inherited. */
let replacement: Fetch | undefined
let property: PropertyDescriptor | undefined

/**
 * Passes requests for the URL to `respond` until the returned function is called. With the last service,
 * `globalThis.fetch` is again what it was, unless other code has replaced it since.
 */
function interceptFetch(url: string, respond: Fetch): () => void {
  if (open.size === 0) {
    const next = globalThis.fetch
    property = Object.getOwnPropertyDescriptor(globalThis, 'fetch')
    replacement = (input, init) => (open.get(originOf(input) ?? '') ?? next)(input, init)
    const replaced = { value: replacement, writable: true, configurable: true, enumerable: true }
    Object.defineProperty(globalThis, 'fetch', replaced)
  }
  open.set(url, respond)
  return () => {
    open.delete(url)
    if (open.size > 0 || globalThis.fetch !== replacement) return
    if (property === undefined) Reflect.deleteProperty(globalThis, 'fetch')
    else Object.defineProperty(globalThis, 'fetch', property)
  }
}
