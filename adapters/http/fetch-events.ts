import type { Engine } from '../../src/index.ts'
import { HeadwaterError, invalid } from '../../src/model/errors.ts'
import { onAbort } from '../../src/runtime/abort.ts'
import { FetchExchange, toResponse } from './fetch-bridge.ts'
import { finishReply } from './finish-reply.ts'
import type { HandlerSettings } from './options.ts'
import { errorReply } from './reply.ts'

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

/** Throws `invalid` unless the value is a function. `name` is that of the function that needs it. */
export function assertOpens(openEngine: unknown, name: string): void {
  if (typeof openEngine === 'function') return
  throw invalid(`${name} needs a function: \`${name}(() => open({ storage }))\``, 'openEngine')
}

/**
 * Answers the requests that scripts of a service worker's own pages make to the paths that `serves` accepts.
 * The first one opens the engine; the next one tries again if that failed, or if the engine was closed.
 */
export function answerFetchEvents(
  openEngine: () => Promise<Engine>,
  settings: HandlerSettings,
  serves: (path: string) => boolean,
  handlerOf: (hw: Engine) => Handler,
): void {
  const ownOrigin = worker.location.origin
  let handler: Promise<Handler> | undefined

  async function openHandler(): Promise<Handler> {
    const hw = await openEngine()
    onAbort(hw.closing, forget)
    return handlerOf(hw)
  }

  function forget(): void {
    handler = undefined
  }

  async function respond(request: Request): Promise<Response> {
    handler ??= openHandler()
    const opening = handler
    let handle: Handler
    try {
      handle = await opening
    } catch (cause) {
      if (handler === opening) forget()
      const exchange = new FetchExchange(request)
      settings.onError(cause, exchange)
      const error = new HeadwaterError('unavailable', 'the storage of this page could not be opened', {
        cause,
      })
      return toResponse(await finishReply(errorReply(error), exchange, settings), request)
    }
    return handle(request)
  }

  worker.addEventListener('fetch', (event) => {
    const { url, mode, destination } = event.request
    const { origin, pathname } = new URL(url)
    if (origin !== ownOrigin || !serves(pathname)) return
    if (mode === 'navigate' || destination !== '') return
    event.stopImmediatePropagation()
    event.respondWith(respond(event.request))
  })
}
