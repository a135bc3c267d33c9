import { onAbort } from '../../src/engine/abort.ts'
import type { Headwater } from '../../src/index.ts'
import { HeadwaterError } from '../../src/model/errors.ts'
import { createHandler } from './handler.ts'
import { type HandlerOptions, settingsOf } from './options.ts'
import { errorReply } from './reply.ts'
import { send } from './send.ts'

type Handler = (request: Request) => Promise<Response>

/** What is used of a service worker's global scope, whose types cannot stand beside those of pages. */
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

/**
 * Serves the wire protocol inside the pages of a service worker: what they fetch below `v1/` of its scope is answered by the engine, without a
 * network.
 *
 * ```ts
 * serveFetchEvents(() => open({ storage: indexedDb('my-app') }), { open: true })
 * ```
 *
 * A browser stops a service worker when it likes, and starts it again for the next request: the engine is opened by the first request that needs it,
 * and again by the next when that failed (503 `unavailable` meanwhile) or when it was closed. Streams that were open break off; the published clients go on
 * where they were, an `EventSource` may have to be made anew.
 *
 * Only requests that code of the worker's own pages makes are answered: no navigations, which any site could cause, and nothing that markup asks for, such as an image
 * in what somebody else wrote. So `open: true` lets in the code of this origin and nobody else. Listeners that are added later do not see what is answered. Call it while the script is first evaluated, and bundle the script into one
 * file: service workers cannot import code later, which tokens, ciphers and compression need.
 *
 * `prefix` is the path of the worker's scope by default. Throws `RangeError` for options that make no sense.
 */
export function serveFetchEvents(openEngine: () => Promise<Headwater>, options: HandlerOptions = {}): void {
  const worker = globalThis as unknown as ServiceWorker
  const mounted = { ...options, prefix: options.prefix ?? new URL(worker.registration.scope).pathname }
  const settings = settingsOf(mounted)
  const ownOrigin = worker.location.origin
  let handler: Promise<Handler> | undefined

  async function openHandler(): Promise<Handler> {
    const hw = await openEngine()
    onAbort(hw.closing, forget)
    return createHandler(hw, mounted)
  }

  function forget(): void {
    handler = undefined
  }

  async function answer(request: Request): Promise<Response> {
    handler ??= openHandler()
    const opening = handler
    let handle: Handler
    try {
      handle = await opening
    } catch (cause) {
      if (handler === opening) forget()
      settings.onError(cause, request)
      const error = new HeadwaterError('unavailable', 'the storage of this page could not be opened', {
        cause,
      })
      return send(errorReply(error), request, settings)
    }
    return handle(request)
  }

  worker.addEventListener('fetch', (event) => {
    const { url, mode, destination } = event.request
    const { origin, pathname } = new URL(url)
    if (origin !== ownOrigin || !pathname.startsWith(`${settings.prefix}/v1/`)) return
    if (mode === 'navigate' || destination !== '') return
    event.stopImmediatePropagation()
    event.respondWith(answer(event.request))
  })
}
