// Stores the page and the files that it names, so that it also loads without a network.
const CACHE = 'shared-todo'

self.addEventListener('install', (event) => event.waitUntil(store()))
self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()))
self.addEventListener('fetch', (event) => {
  const { method, url } = event.request
  if (method === 'GET' && !new URL(url).pathname.startsWith('/v1/')) event.respondWith(load(event.request))
})

async function store() {
  const cache = await caches.open(CACHE)
  const page = await fetch('/')
  const files = [...(await page.clone().text()).matchAll(/(?:src|href)="(\/[^"]+)"/g)].map(([, path]) => path)
  await cache.put('/', page)
  await cache.addAll(files)
}

/** From the network, and without one what was stored last. */
async function load(request) {
  try {
    const response = await fetch(request)
    if (response.ok) await (await caches.open(CACHE)).put(request, response.clone())
    return response
  } catch {
    return (await caches.match(request, { cacheName: CACHE, ignoreVary: true })) ?? Response.error()
  }
}
