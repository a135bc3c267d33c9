import { once } from 'node:events'
import { readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname, join, resolve } from 'node:path'
import { type BuildOptions, build } from 'esbuild'
import { bundledAssets } from '../../scripts/bundled-assets.mjs'

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html',
  '.css': 'text/css',
  '.js': 'text/javascript',
  '.svg': 'image/svg+xml',
}

interface File {
  readonly contents: string | Uint8Array
  /** Default: by the extension of the path. */
  readonly type?: string
  /** The content security policy. */
  readonly policy?: string
}

export interface StaticServer {
  /** The origin of the files. */
  readonly url: string
  /** The paths of all requests. */
  readonly requests: readonly string[]
  close(): Promise<void>
}

/** Serves files by their paths. One whose `find` rejects is 404. */
async function serveFiles(find: (path: string) => Promise<File>): Promise<StaticServer> {
  const requests: string[] = []
  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost')
    requests.push(pathname)
    try {
      const { contents, type = TYPES[extname(pathname)] ?? 'text/plain', policy } = await find(pathname)
      if (policy !== undefined) response.setHeader('content-security-policy', policy)
      response.setHeader('content-type', type).end(contents)
    } catch {
      response.writeHead(404).end(`${pathname} does not exist`)
    }
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    url: `http://localhost:${(server.address() as AddressInfo).port}`,
    requests,
    async close() {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

/** Serves a directory, which is deleted at the end. */
export async function serveDirectory(directory: string): Promise<StaticServer> {
  const server = await serveFiles(async (path) => ({ contents: await readFile(join(directory, path)) }))
  return {
    ...server,
    async close() {
      await server.close()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

/** The strictest policy that permits scripts: no `eval`, no WebAssembly. */
const STRICT = "default-src 'none'; script-src 'self'; worker-src 'self'; connect-src *"
const WITH_WASM = STRICT.replace("script-src 'self'", "script-src 'self' 'wasm-unsafe-eval'")
const HTML = '<!doctype html><title>headwater</title><link rel="icon" href="data:,">'

/**
 * Serves two empty pages (`/` with a strict policy, `/wasm` with one that permits WebAssembly), the bundles
 * of `pages/`, and, at the root, so that its scope is the whole origin, `/service-worker.js`.
 */
export async function servePages(): Promise<StaticServer> {
  const files = new Map<string, Uint8Array>()
  const bundling = new Map<string, Promise<void>>()

  /** Bundles a script once. Its chunks are found by their paths then. */
  async function bundled(path: string, script: string): Promise<Uint8Array> {
    const bundle = async () => {
      for (const [name, contents] of await bundleOf(script)) files.set(name, contents)
    }
    if (!files.has(path)) bundling.set(path, bundling.get(path) ?? bundle())
    await bundling.get(path)
    return files.get(path)!
  }

  return serveFiles(async (path) => {
    if (path === '/' || path === '/wasm') {
      return { contents: HTML, type: 'text/html', policy: path === '/' ? STRICT : WITH_WASM }
    }
    const [, script] = /^\/([a-z-]+)\.js$/.exec(path) ?? []
    const contents = script === undefined ? files.get(path) : await bundled(path, script).catch(throwing)
    if (contents === undefined) throw new Error(`${path} does not exist`)
    return { contents, policy: STRICT }
  })
}

/** A script that reports an error in the page. */
function throwing(error: unknown): string {
  return `throw new Error(${JSON.stringify(String(error))})`
}

/** Bundles a script of `pages/`. Rejects if it needs Node, and on warnings of esbuild. */
async function bundleOf(script: string): Promise<Map<string, Uint8Array>> {
  const outdir = resolve('dist', 'pages')
  // The script of a service worker cannot use `import()`.
  const format: BuildOptions =
    script === 'service-worker' ? { format: 'iife' } : { format: 'esm', splitting: true }
  const { outputFiles, warnings } = await build({
    ...format,
    entryPoints: [join(import.meta.dirname, 'pages', `${script}.ts`)],
    plugins: [bundledAssets],
    // Only the build makes `zstd-codec` suitable for bundlers; the published client uses HTTP/2 in Node only.
    external: ['zstd-codec', 'node:http2'],
    outdir,
    write: false,
    bundle: true,
    platform: 'browser',
    target: 'es2022',
    logLevel: 'silent',
  })
  if (warnings.length > 0) throw new Error(`esbuild warns: ${warnings.map(({ text }) => text).join('; ')}`)
  return new Map(outputFiles!.map(({ path, contents }) => [path.slice(outdir.length), contents]))
}
