import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { build, type Plugin } from 'esbuild'
import { defineConfig } from 'tsup'
import { bundledAssets } from './scripts/bundled-assets.mjs'

/**
 * `zstd-codec` goes into the build, as a chunk of its own that is loaded when it is first needed: bundlers
 * choke on the Node modules that it asks for in Node, and on its second copy for runtimes without WebAssembly.
 * The module needs nothing of the runtime but WebAssembly, and is told so: then it asks for nothing, and adds
 * no listeners to `process` either.
 */
const embedZstdCodec: Plugin = {
  name: 'embed-zstd-codec',
  setup(build) {
    build.onResolve({ filter: /^(fs|path|crypto)$|zstd-codec-binding\.js$/ }, ({ path, importer }) =>
      importer.includes('zstd-codec') ? { path, namespace: 'not-needed' } : undefined,
    )
    build.onLoad({ filter: /.*/, namespace: 'not-needed' }, () => ({ contents: 'module.exports = {}' }))
    build.onLoad({ filter: /zstd-codec-binding-wasm\.js$/ }, async ({ path }) => {
      let contents = await readFile(path, 'utf8')
      const replace = (pattern: RegExp, replacement: (...match: string[]) => string): void => {
        const code = contents
        contents = code.replace(pattern, replacement)
        if (contents === code) throw new Error(`zstd-codec has changed: no ${pattern} in it`)
      }
      replace(/ENVIRONMENT_(IS_WEB|IS_WORKER|HAS_NODE)=typeof [^;]*;/g, () => '')
      // Compressed, the binary is a quarter as long. The module awaits what `getBinary` returns.
      replace(/(?<=;base64,)[A-Za-z0-9+/=]{1000,}/, (base64) =>
        gzipSync(Buffer.from(base64, 'base64'), { level: 9 }).toString('base64'),
      )
      replace(
        /if\(binary\)\{return binary\}/,
        () =>
          'if(binary){return new Response(new Blob([binary]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer()}',
      )
      return { contents }
    })
  },
}

/**
 * `cli-progress` goes into the command line. It asks for two modules of Node by names that the build does not
 * take for Node's.
 */
const embedCliProgress: Plugin = {
  name: 'embed-cli-progress',
  setup(build) {
    build.onResolve({ filter: /^(events|readline)$/ }, ({ path, importer }) =>
      importer.includes('cli-progress') ? { path, namespace: 'of-node' } : undefined,
    )
    build.onLoad({ filter: /.*/, namespace: 'of-node' }, ({ path }) => ({
      contents: `module.exports = process.getBuiltinModule('node:${path}')`,
    }))
  },
}

const DIST = join(import.meta.dirname, 'dist')

/** Makes one minified module of `headwater/browser`, with RxJS and all other dependencies. */
async function bundleForPages(): Promise<void> {
  await build({
    entryPoints: { browser: join(DIST, 'browser.js') },
    outdir: DIST,
    allowOverwrite: true,
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    logLevel: 'error',
    banner: { js: '/*! headwater and its dependencies: THIRD-PARTY-NOTICES.md */' },
  })
}

/** Shortens the names in the console, a tenth of the package. */
async function shortenConsole(): Promise<void> {
  await build({
    entryPoints: { console: join(DIST, 'console.js') },
    outdir: DIST,
    allowOverwrite: true,
    minify: true,
    format: 'esm',
    target: 'es2022',
    logLevel: 'error',
  })
}

/**
 * One entry for each subpath of `package.json`. Code that they share becomes chunks, so there is one copy of
 * every class.
 */
export default defineConfig({
  entry: {
    index: 'src/index.ts',
    storage: 'src/storage/index.ts',
    usage: 'src/usage/index.ts',
    memory: 'adapters/storage/memory/index.ts',
    indexeddb: 'adapters/storage/indexeddb/index.ts',
    'durable-object': 'adapters/storage/durable-object/index.ts',
    filesystem: 'adapters/storage/filesystem/index.ts',
    postgres: 'adapters/storage/postgres/index.ts',
    http: 'adapters/http/index.ts',
    browser: 'adapters/browser/index.ts',
    node: 'adapters/node/index.ts',
    react: 'adapters/react/index.ts',
    'aegis-256': 'adapters/aegis-256/index.ts',
    console: 'adapters/console/index.ts',
    'console-page': 'adapters/console/page.ts',
    testing: 'adapters/testing/index.ts',
    conformance: 'adapters/conformance/index.ts',
    cli: 'adapters/cli/main.ts',
  },
  format: 'esm',
  target: 'es2022',
  platform: 'neutral',
  removeNodeProtocol: false,
  external: [/^node:/],
  noExternal: ['zstd-codec', 'citty', 'cli-progress', 'preact', 'uplot'],
  esbuildPlugins: [embedZstdCodec, embedCliProgress, bundledAssets],
  esbuildOptions(options) {
    // Puts constants where they are used. The bundlers of those who use the package can't: for them constants
    // of other chunks are variables.
    options.minifySyntax = true
    // Halves the package, together with leaving out the source maps. Names stay, for stack traces.
    options.minifyWhitespace = true
    // Node prints the line of an uncaught error.
    options.lineLimit = 400
  },
  splitting: true,
  clean: true,
  dts: { compilerOptions: { stripInternal: true } },
  async onSuccess() {
    await bundleForPages()
    await shortenConsole()
  },
})
