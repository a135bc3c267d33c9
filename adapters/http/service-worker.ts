import type { Engine } from '../../src/index.ts'
import { assertOpens } from './core.ts'
import { createHandler } from './fetch-bridge.ts'
import { type HandlerOptions, handlerSettings } from './options.ts'

/**
 * Serves the wire protocol to the pages of a service worker: the engine answers what they fetch below `v1/`
 * of its scope, without a network.
 *
 * ```ts
 * serveFetchEvents(() => open({ storage: indexedDb('my-app') }), { auth: 'none' })
 * ```
 *
 * A browser stops a service worker at any time and starts it again for the next request. The first request
 * opens the engine; the next one tries again if that failed (503 `unavailable`) or if the engine was closed.
 * Open streams break off when the worker stops: the published clients resume, an `EventSource` may have to be
 * created again.
 *
 * Only requests made by scripts of the worker's own pages are answered. Navigations, which any site can
 * cause, and requests made by markup, such as images, are left to the network. So `auth: 'none'` gives access
 * to scripts of this origin only.
 *
 * Call it during the first evaluation of the script, and bundle the script into one file: service workers
 * cannot import code later, which tokens, ciphers and compression need. Listeners added later do not receive
 * the requests that it answers.
 *
 * The default of `prefix` is the path of the worker's scope. Throws `invalid` for invalid options.
 */
export function serveFetchEvents(openEngine: () => Promise<Engine>, options: HandlerOptions = {}): void {
  assertOpens(openEngine, 'serveFetchEvents')
  const mounted = { ...options, prefix: options.prefix ?? scopePath() }
  const { prefix } = handlerSettings(mounted)
  answerFetchEvents((path) => path.startsWith(`${prefix}/v1/`), createHandler(openEngine, mounted))
}

type Handler = (request: Request) => Promise<Response>

/** The used part of a service worker's global scope, whose types conflict with those of pages. */
interface ServiceWorker {
  readonly location: { readonly origin: string }
  readonly registration: { readonly scope: string }
  addEventListener(type: 'fetch', listener: (event: FetchEvent) => void): void
}

interface FetchEvent {
  readonly request: Request
  respondWith(response: Promise<Response>): void
  stopImmediatePropagation(): void
}

const worker = globalThis as unknown as ServiceWorker

/** The path of the service worker's scope. */
export function scopePath(): string {
  return new URL(worker.registration.scope).pathname
}

/** Answers what scripts of a service worker's own pages request from the paths that `serves` accepts. */
export function answerFetchEvents(serves: (path: string) => boolean, handler: Handler): void {
  const ownOrigin = worker.location.origin
  worker.addEventListener('fetch', (event) => {
    const { url, mode, destination } = event.request
    const { origin, pathname } = new URL(url)
    if (origin !== ownOrigin || !serves(pathname)) return
    if (mode === 'navigate' || destination !== '') return
    event.stopImmediatePropagation()
    event.respondWith(handler(event.request))
  })
}
