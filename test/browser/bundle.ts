import { join, resolve } from 'node:path'
import { build, type Plugin } from 'esbuild'

const PROJECT = resolve(import.meta.dirname, '../..')

/** What pages are bundled with: the sources, or the package as it was built. */
export type Variant = 'sources' | 'package'

/** The entries of the package that pages use, by the source that they are built from. */
const BUILT: Readonly<Record<string, string>> = {
  'src/index.ts': 'dist/index.js',
  'adapters/http/index.ts': 'dist/http.js',
  'adapters/storage/memory/index.ts': 'dist/memory.js',
  'adapters/storage/indexeddb/index.ts': 'dist/indexeddb.js',
  'adapters/aegis-256/index.ts': 'dist/aegis-256.js',
}

/** Lets pages name their imports once, by the sources. */
const takeThePackage: Plugin = {
  name: 'take-the-package',
  setup({ onResolve }) {
    onResolve({ filter: /\/index\.ts$/ }, ({ path, resolveDir }) => {
      const source = resolve(resolveDir, path)
      const entry = Object.keys(BUILT).find((name) => source === join(PROJECT, name))
      return entry === undefined ? undefined : { path: join(PROJECT, BUILT[entry]!) }
    })
  },
}

/**
 * Packages that the sources import where a bundle of them could not follow. The build embeds `zstd-codec` in a way that bundlers can take;
 * the published client looks for HTTP/2 only where it finds itself in Node.
 */
const LEFT_OUT: Readonly<Record<Variant, readonly string[]>> = {
  sources: ['zstd-codec', 'node:http2'],
  package: [],
}

/** Bundles a script of `pages/` for browsers. Rejects when it needs Node, or when esbuild has anything else to say against it. */
export async function bundle(script: string, variant: Variant): Promise<Map<string, Uint8Array>> {
  const outdir = join(PROJECT, 'dist', 'pages')
  const { outputFiles, warnings } = await build({
    entryPoints: [join(import.meta.dirname, 'pages', `${script}.ts`)],
    plugins: variant === 'package' ? [takeThePackage] : [],
    external: [...LEFT_OUT[variant]],
    outdir,
    write: false,
    bundle: true,
    splitting: true,
    platform: 'browser',
    format: 'esm',
    target: 'es2022',
    logLevel: 'silent',
    // esbuild does not tell users of a package about its style; here it lies outside `node_modules`.
    ...(variant === 'package' && {
      logOverride: { 'ignored-bare-import': 'silent', 'suspicious-boolean-not': 'silent' },
    }),
  })
  if (warnings.length > 0) throw new Error(`esbuild warns: ${warnings.map(({ text }) => text).join('; ')}`)
  return new Map(outputFiles.map(({ path, contents }) => [path.slice(outdir.length), contents]))
}

/** Bundles the script of a service worker, which cannot load anything later, into one. */
export async function bundleServiceWorker(script: string): Promise<Uint8Array> {
  const { outputFiles } = await build({
    entryPoints: [join(import.meta.dirname, 'pages', `${script}.ts`)],
    external: [...LEFT_OUT.sources],
    write: false,
    bundle: true,
    platform: 'browser',
    format: 'iife',
    target: 'es2022',
    logLevel: 'silent',
  })
  return outputFiles[0]!.contents
}
