import { join, resolve } from 'node:path'
import { type BuildOptions, build } from 'esbuild'
import { bundledAssets } from '../../scripts/bundled-assets.mjs'

const OUT = join(resolve(import.meta.dirname, '../..'), 'dist', 'pages')

const optionsOf = (script: string): BuildOptions => ({
  entryPoints: [join(import.meta.dirname, 'pages', `${script}.ts`)],
  plugins: [bundledAssets],
  // Only the build makes `zstd-codec` suitable for bundlers; the published client uses HTTP/2 in Node only.
  external: ['zstd-codec', 'node:http2'],
  outdir: OUT,
  bundle: true,
  platform: 'browser',
  target: 'es2022',
  logLevel: 'silent',
})

/** Bundles a script of `pages/`. Rejects if it needs Node, and on warnings of esbuild. */
export async function bundle(script: string): Promise<Map<string, Uint8Array>> {
  const { outputFiles, warnings } = await build({
    ...optionsOf(script),
    splitting: true,
    format: 'esm',
    write: false,
  })
  if (warnings.length > 0) throw new Error(`esbuild warns: ${warnings.map(({ text }) => text).join('; ')}`)
  return new Map(outputFiles.map(({ path, contents }) => [path.slice(OUT.length), contents]))
}

/** Bundles the script of a service worker, which cannot use `import()`, into one file. */
export async function bundleServiceWorker(script: string): Promise<Uint8Array> {
  const { outputFiles } = await build({ ...optionsOf(script), format: 'iife', write: false })
  return outputFiles[0]!.contents
}
