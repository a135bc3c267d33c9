declare const self: ServiceWorkerGlobalScope

export interface OwnFiles {
  /** Another one for every other content. */
  readonly version: string
  /** Relative to the scope; `./` is the page. */
  readonly files: readonly string[]
}

/**
 * Makes an app of a few files work offline: they are stored when the service worker is installed, all of one version, and served from there. Other
 * requests go to the network.
 */
export function serveOwnFiles({ version, files }: OwnFiles): void {
  const { scope } = self.registration
  // An origin may have other apps, whose caches are none of our business.
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
    // What the browser threw away is still on the network, perhaps.
    return (await caches.match(url, { cacheName })) ?? fetch(request)
  }

  self.addEventListener('install', (event) => event.waitUntil(store()))
  self.addEventListener('activate', (event) => event.waitUntil(takeOver()))
  // A page that was reloaded past its cache is without its service worker until it asks.
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
