// Imports of other things than code, for esbuild and Vite: `./openapi.yaml?json` is the document as a string
// of JSON, `./base.css?inline` a style sheet as a string (as in Vite), and `./start.ts?script` a module of
// the console with everything that it imports, as a string, built by Vite.
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'

const ASSETS = {
  '?json': async (path) => JSON.stringify(parse(await readFile(path, 'utf8'))),
  '?script': async (path) => {
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
  },
}

/** The plugin of esbuild. */
export const bundledAssets = {
  name: 'bundled-assets',
  setup({ initialOptions, onLoad }) {
    initialOptions.loader = { ...initialOptions.loader, '.css': 'text' }
    onLoad({ filter: /\.(ts|yaml)$/ }, async ({ path, suffix }) =>
      suffix in ASSETS ? { contents: await ASSETS[suffix](path), loader: 'text' } : undefined,
    )
  },
}

/** The plugin of Vite, which has `?inline` itself. */
export const bundledAssetsOfVite = {
  name: 'bundled-assets',
  enforce: 'pre',
  async load(id) {
    const [, path, suffix] = /^(.*)(\?json|\?script)$/.exec(id) ?? []
    if (suffix === undefined) return null
    const text = await ASSETS[suffix](path.startsWith('file:') ? fileURLToPath(path) : path)
    return `export default ${JSON.stringify(text)}`
  },
}
