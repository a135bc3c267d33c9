declare const self: ServiceWorkerGlobalScope

export interface OwnFiles {
  /** Changes with the content of the files. */
  readonly version: string
  /** Relative to the scope; `./` is the page. */
  readonly files: readonly string[]
}

/**
 * Makes an app work offline: stores all its files when the service worker is installed, and serves them from
 * the cache. Other requests go to the network.
 */
export function serveOwnFiles({ version, files }: OwnFiles): void {
  const { scope } = self.registration
  // Must not touch the caches of other apps of the origin.
  const cacheNames = `own-files ${scope} `
  const cacheName = cacheNames + version
  const urls = new Set(files.map((file) => new URL(file, scope).href))

  async function store(): Promise<void> {
    const cache = await caches.open(cacheName)
    await cache.addAll([...urls].map((url) => new Request(url, { cache: 'reload' })))
    await self.skipWaiting()
  }

  async function takeOver(): Promise<void> {
    const old = (await caches.keys()).filter((name) => name.startsWith(cacheNames) && name !== cacheName)
    await Promise.all(old.map((name) => caches.delete(name)))
    await self.clients.claim()
  }

  async function stored(url: string, request: Request): Promise<Response> {
    // The browser may have deleted the cache.
    return (await caches.match(url, { cacheName })) ?? fetch(request)
  }

  self.addEventListener('install', (event) => event.waitUntil(store()))
  self.addEventListener('activate', (event) => event.waitUntil(takeOver()))
  // After a forced reload, a page has no service worker until it asks.
  self.addEventListener('message', (event) => {
    if (event.data === 'claim') event.waitUntil(self.clients.claim())
  })
  self.addEventListener('fetch', (event) => {
    const { request } = event
    const url = new URL(request.url)
    url.search = ''
    url.hash = ''
    if (request.method === 'GET' && urls.has(url.href)) event.respondWith(stored(url.href, request))
  })
}
