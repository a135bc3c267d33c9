// Sends the requests of `server.js`, which it exposes as `send(id, event)`.
const { serviceWorker } = navigator
await serviceWorker.register('/service-worker.js')
if (serviceWorker.controller === null) {
  await new Promise((resolve) => serviceWorker.addEventListener('controllerchange', resolve, { once: true }))
}

const aborters = new Map()

self.request = async (id, { path, body, ...init }) => {
  const aborter = new AbortController()
  aborters.set(id, aborter)
  try {
    const response = await fetch(path, {
      ...init,
      ...(body !== '' && { body: Uint8Array.from(atob(body), (byte) => byte.charCodeAt(0)) }),
      signal: aborter.signal,
    })
    await self.send(id, { status: response.status, headers: [...response.headers] })
    for await (const chunk of response.body ?? []) {
      await self.send(id, { chunk: btoa(Array.from(chunk, (byte) => String.fromCharCode(byte)).join('')) })
    }
    await self.send(id, { end: true })
  } catch (error) {
    await self.send(id, { error: String(error) })
  }
  aborters.delete(id)
}
self.abort = (id) => aborters.get(id)?.abort()
self.isReady = true
