// Imports that become strings, for esbuild and Vite: `./page-script.ts?bundle` is the script and everything
// it imports, minified, with its hash for a content security policy; `./base.css?text` is the style sheet,
// minified.
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { build, transform } from 'esbuild'

const ASSET = /^(.*)\?(bundle|text)$/

async function moduleOf(path, kind) {
  if (kind === 'text') {
    const { code } = await transform(await readFile(path, 'utf8'), { loader: 'css', minify: true })
    return `export default ${JSON.stringify(code)}`
  }
  const { outputFiles } = await build({
    entryPoints: [path],
    bundle: true,
    write: false,
    minify: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    legalComments: 'none',
    define: { 'process.env.NODE_ENV': '"production"' },
    plugins: [bundledAssets],
    logLevel: 'error',
  })
  const script = outputFiles[0].text
  if (/<!--|<\/script/i.test(script)) throw new Error(`${path} cannot be an inline script`)
  const hash = `sha256-${createHash('sha256').update(script).digest('base64')}`
  return `export default ${JSON.stringify({ script, hash })}`
}

/** The plugin of esbuild. */
export const bundledAssets = {
  name: 'bundled-assets',
  setup({ onResolve, onLoad, resolve }) {
    onResolve({ filter: /\?(bundle|text)$/ }, async ({ path, resolveDir, kind, importer }) => {
      const [, file, suffix] = ASSET.exec(path)
      const resolved = await resolve(file, { resolveDir, kind, importer })
      if (resolved.errors.length > 0) return { errors: resolved.errors }
      return { path: `${resolved.path}?${suffix}`, namespace: 'bundled-asset' }
    })
    onLoad({ filter: /.*/, namespace: 'bundled-asset' }, async ({ path }) => {
      const [, file, kind] = ASSET.exec(path)
      return { contents: await moduleOf(file, kind), loader: 'js' }
    })
  },
}

/** The plugin of Vite. */
export const bundledAssetsOfVite = {
  name: 'bundled-assets',
  enforce: 'pre',
  async load(id) {
    const [, path, kind] = ASSET.exec(id) ?? []
    if (kind === undefined) return null
    return moduleOf(path.startsWith('file:') ? fileURLToPath(path) : path, kind)
  },
}
