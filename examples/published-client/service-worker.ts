import { open } from 'headwater'
import { serveFetchEvents } from 'headwater/http'
import { indexedDb } from 'headwater/indexeddb'

declare const self: ServiceWorkerGlobalScope
const CACHE = 'published-client'

// Replies to requests below `/v1`.
serveFetchEvents(() => open({ storage: indexedDb('published-client') }), { auth: 'none' })

// Stores the page and the files that it names, so that it also loads without a network.
self.addEventListener('install', (event) => event.waitUntil(store()))
self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()))
// A page that was loaded with a forced reload has no service worker until it asks.
self.addEventListener('message', (event) => event.waitUntil(self.clients.claim()))
self.addEventListener('fetch', (event) => {
  const { method, url } = event.request
  if (method === 'GET' && !new URL(url).pathname.startsWith('/v1/')) event.respondWith(load(event.request))
})

async function store() {
  const cache = await caches.open(CACHE)
  const page = await fetch('/')
  const html = await page.clone().text()
  await cache.put('/', page)
  await cache.addAll([...html.matchAll(/(?:src|href)="(\/[^"]+)"/g)].map(([, path]) => path!))
  await self.skipWaiting()
}

/** From the network, and without one what was stored last. */
async function load(request: Request) {
  try {
    const response = await fetch(request)
    if (response.ok) await (await caches.open(CACHE)).put(request, response.clone())
    return response
  } catch {
    return (await caches.match(request, { cacheName: CACHE, ignoreVary: true })) ?? Response.error()
  }
}
