import { join, resolve } from 'node:path'
import { build, type Plugin } from 'esbuild'
import { bundledAssets } from '../../scripts/bundled-assets.mjs'

const PROJECT = resolve(import.meta.dirname, '../..')

/** What pages are bundled from: the sources or the built package. */
export type Variant = 'sources' | 'package'

/** The entries of the built package by their sources. */
const BUILT: Readonly<Record<string, string>> = {
  'src/index.ts': 'dist/index.js',
  'src/usage/index.ts': 'dist/usage.js',
  'adapters/client/index.ts': 'dist/client.js',
  'adapters/http/index.ts': 'dist/http.js',
  'adapters/durable-streams/index.ts': 'dist/durable-streams.js',
  'adapters/storage/memory/index.ts': 'dist/memory.js',
  'adapters/storage/indexeddb/index.ts': 'dist/indexeddb.js',
  'adapters/aegis-256/index.ts': 'dist/aegis-256.js',
  'adapters/react/index.ts': 'dist/react.js',
  'adapters/sync/index.ts': 'dist/sync.js',
}

/** Redirects imports of the sources to the built package. */
const usePackage: Plugin = {
  name: 'use-package',
  setup({ onResolve }) {
    onResolve({ filter: /\/index\.ts$/ }, ({ path, resolveDir }) => {
      const source = resolve(resolveDir, path)
      const entry = Object.keys(BUILT).find((name) => source === join(PROJECT, name))
      return entry === undefined ? undefined : { path: join(PROJECT, BUILT[entry]!) }
    })
  },
}

/**
 * Packages that bundles of the sources cannot include. Only the build makes `zstd-codec` suitable for
 * bundlers; the published client uses HTTP/2 in Node only.
 */
const EXTERNAL: Readonly<Record<Variant, readonly string[]>> = {
  sources: ['zstd-codec', 'node:http2'],
  package: [],
}

/** Bundles a script of `pages/`. Rejects if it needs Node, and on warnings of esbuild. */
export async function bundle(script: string, variant: Variant): Promise<Map<string, Uint8Array>> {
  const outdir = join(PROJECT, 'dist', 'pages')
  const { outputFiles, warnings } = await build({
    entryPoints: [join(import.meta.dirname, 'pages', `${script}.ts`)],
    plugins: variant === 'package' ? [usePackage] : [bundledAssets],
    external: [...EXTERNAL[variant]],
    outdir,
    write: false,
    bundle: true,
    splitting: true,
    platform: 'browser',
    format: 'esm',
    target: 'es2022',
    logLevel: 'silent',
    // esbuild reports style warnings only for packages outside `node_modules`.
    ...(variant === 'package' && {
      logOverride: { 'ignored-bare-import': 'silent', 'suspicious-boolean-not': 'silent' },
    }),
  })
  if (warnings.length > 0) throw new Error(`esbuild warns: ${warnings.map(({ text }) => text).join('; ')}`)
  return new Map(outputFiles.map(({ path, contents }) => [path.slice(outdir.length), contents]))
}

/** Bundles the script of a service worker, which cannot use `import()`, into one file. */
export async function bundleServiceWorker(script: string): Promise<Uint8Array> {
  const { outputFiles } = await build({
    entryPoints: [join(import.meta.dirname, 'pages', `${script}.ts`)],
    plugins: [bundledAssets],
    external: [...EXTERNAL.sources],
    write: false,
    bundle: true,
    platform: 'browser',
    format: 'iife',
    target: 'es2022',
    logLevel: 'silent',
  })
  return outputFiles[0]!.contents
}
