// Imports of other things than code, for esbuild and Vite: `./openapi.yaml?json` is the document as a string
// of JSON, `./console.css?inline` a style sheet as a string (as in Vite), and `./start.ts?script` a module of
// the console with everything that it imports, as a string, built by Vite.
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { transform } from 'esbuild'
import { parse } from 'yaml'

const ASSET = /^(.*)\?(script|inline|json)$/

async function assetModule(path, kind) {
  const asset = { script: scriptOf, inline: styleOf, json: jsonOf }[kind]
  return `export default ${JSON.stringify(await asset(path))}`
}

async function scriptOf(path) {
  const { build } = await import('vite')
  const { output } = await build({
    configFile: false,
    root: fileURLToPath(new URL('../adapters/console', import.meta.url)),
    logLevel: 'error',
    define: { 'process.env.NODE_ENV': '"production"' },
    build: {
      write: false,
      target: 'es2022',
      modulePreload: false,
      rolldownOptions: {
        input: path,
        // Modules that a page never loads: of Node, and the codec of frames, which pages do not ask for.
        external: [/[\\/]client[\\/]node[\\/]/, /zstd-module/],
        output: { codeSplitting: false },
      },
    },
  })
  return output[0].code
}

async function styleOf(path) {
  const source = await readFile(path, 'utf8')
  return (await transform(source, { loader: 'css', minify: true })).code
}

async function jsonOf(path) {
  return JSON.stringify(parse(await readFile(path, 'utf8')))
}

/** The plugin of esbuild. */
export const bundledAssets = {
  name: 'bundled-assets',
  setup({ onResolve, onLoad, resolve }) {
    onResolve({ filter: ASSET }, async ({ path, resolveDir, kind, importer }) => {
      const [, file, suffix] = ASSET.exec(path)
      const resolved = await resolve(file, { resolveDir, kind, importer })
      if (resolved.errors.length > 0) return { errors: resolved.errors }
      return { path: `${resolved.path}?${suffix}`, namespace: 'bundled-asset' }
    })
    onLoad({ filter: /.*/, namespace: 'bundled-asset' }, async ({ path }) => {
      const [, file, kind] = ASSET.exec(path)
      return { contents: await assetModule(file, kind), loader: 'js' }
    })
  },
}

/** The plugin of Vite, which has `?inline` itself. */
export const bundledAssetsOfVite = {
  name: 'bundled-assets',
  enforce: 'pre',
  async load(id) {
    const [, path, kind] = ASSET.exec(id) ?? []
    if (kind === undefined || kind === 'inline') return null
    return assetModule(path.startsWith('file:') ? fileURLToPath(path) : path, kind)
  },
}
