import { invalid } from '../../src/model/errors.ts'

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
