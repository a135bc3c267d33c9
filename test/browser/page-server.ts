import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { bundle, bundleServiceWorker } from './bundle.ts'

/** The strictest policy that permits scripts: no `eval`, no WebAssembly. */
const STRICT = "default-src 'none'; script-src 'self'; worker-src 'self'; connect-src *"
const WITH_WASM = STRICT.replace("script-src 'self'", "script-src 'self' 'wasm-unsafe-eval'")

/** The path of the worker: at the root, so that its scope is the whole origin. */
const SERVICE_WORKER = '/service-worker.js'

const HTML = '<!doctype html><title>headwater</title><link rel="icon" href="data:,">'

export interface PageServer {
  readonly url: string
  close(): Promise<void>
}

/**
 * Serves two empty pages (`/` with a strict policy, `/wasm` with one that permits WebAssembly), the bundles
 * of `pages/`, and a service worker.
 */
export async function servePages(): Promise<PageServer> {
  const files = new Map<string, Uint8Array>()
  const bundled = new Map<string, Promise<void>>()

  async function bundleOnce(path: string): Promise<void> {
    const [, script] = /^\/([a-z-]+)\.js$/.exec(path) ?? []
    // Chunks are bundled with the script that imports them.
    if (script === undefined || files.has(path)) return
    const bundling =
      bundled.get(path) ??
      bundle(script).then((outputs) => {
        for (const [name, contents] of outputs) files.set(name, contents)
      })
    bundled.set(path, bundling)
    await bundling
  }

  const server = createServer(async (req, res) => {
    const path = req.url ?? '/'
    res.setHeader('content-security-policy', path === '/wasm' ? WITH_WASM : STRICT)
    if (path === '/' || path === '/wasm') {
      res.setHeader('content-type', 'text/html').end(HTML)
      return
    }
    try {
      if (path !== SERVICE_WORKER) await bundleOnce(path)
      else if (!files.has(path)) files.set(path, await bundleServiceWorker('service-worker'))
      const contents = files.get(path)
      if (contents === undefined) throw new Error(`${path} does not exist`)
      res.setHeader('content-type', 'text/javascript').end(contents)
    } catch (error) {
      // Reports the error in the page.
      res
        .setHeader('content-type', 'text/javascript')
        .end(`throw new Error(${JSON.stringify(String(error))})`)
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
