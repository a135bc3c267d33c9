import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { build, type Plugin } from 'esbuild'
import { defineConfig } from 'tsup'
import { bundledAssets } from './scripts/bundled-assets.mjs'
import { writeExampleFolders } from './scripts/example-folders.mjs'

/**
 * What `zstd-codec` looks at to find out where it runs. Without these globals it needs nothing but WebAssembly,
 * adds no listeners to `process`, and does not take the `print` of pages for a console.
 */
const HIDDEN_GLOBALS = 'document, importScripts, print, process, quit, read, require, window'

/**
 * `zstd-codec` goes into the build, as a chunk of its own that is loaded when it is first needed: bundlers
 * choke on the Node modules that it asks for in Node, and on its second copy for runtimes without WebAssembly.
 */
const embedZstdCodec: Plugin = {
  name: 'embed-zstd-codec',
  setup(build) {
    build.onLoad({ filter: /zstd-codec-binding\.js$/ }, () => ({ contents: '' }))
    build.onLoad({ filter: /zstd-codec-binding-wasm\.js$/ }, async ({ path }) => ({
      contents: `var ${HIDDEN_GLOBALS}\n${await readFile(path, 'utf8')}`,
    }))
  },
}

/**
 * `cli-progress` and `commander` go into the command line. They ask for modules of Node with `require`, which
 * modules do not have.
 */
const embedCliPackages: Plugin = {
  name: 'embed-cli-packages',
  setup(build) {
    build.onLoad({ filter: /node_modules[/\\](cli-progress|commander)[/\\].*\.js$/ }, async ({ path }) => ({
      contents: (await readFile(path, 'utf8')).replaceAll(
        /require\('(?:node:)?(events|readline|child_process|path|fs|process)'\)/g,
        "globalThis.process.getBuiltinModule('node:$1')",
      ),
    }))
  },
}

const DIST = join(import.meta.dirname, 'dist')

/** Makes one minified module of `headwater/browser`, with all dependencies. */
async function bundleForPages(): Promise<void> {
  const { outputFiles } = await build({
    entryPoints: { browser: join(DIST, 'browser.js') },
    outdir: DIST,
    write: false,
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    // A page asks servers for frames without zstd.
    external: ['./zstd-module-*'],
    logLevel: 'error',
  })
  const banner = '/*! headwater and its dependencies: THIRD-PARTY-NOTICES.md */'
  await writeFile(join(DIST, 'browser.js'), `${banner}\n${outputFiles[0]!.text}`)
}

/**
 * One entry for each subpath of `package.json`. Code that they share becomes chunks, so there is one copy of
 * every class.
 */
export default defineConfig({
  entry: {
    index: 'src/index.ts',
    storage: 'adapters/storage/index.ts',
    usage: 'src/usage/index.ts',
    memory: 'adapters/storage/memory/index.ts',
    indexeddb: 'adapters/storage/indexeddb/index.ts',
    sqlite: 'adapters/storage/sqlite/index.ts',
    'durable-object': 'adapters/storage/sqlite/durable-object.ts',
    filesystem: 'adapters/storage/filesystem/index.ts',
    postgres: 'adapters/storage/postgres/index.ts',
    s3: 'adapters/storage/s3/index.ts',
    client: 'adapters/client/index.ts',
    http: 'adapters/http/index.ts',
    'durable-streams': 'adapters/durable-streams/index.ts',
    browser: 'adapters/browser/index.ts',
    node: 'adapters/node/index.ts',
    react: 'adapters/react/index.ts',
    vue: 'adapters/vue/index.ts',
    svelte: 'adapters/svelte/index.ts',
    solid: 'adapters/solid/index.ts',
    sync: 'adapters/sync/index.ts',
    fold: 'adapters/fold/index.ts',
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
  noExternal: [
    'zstd-codec',
    'cli-progress',
    'commander',
    '@commander-js/extra-typings',
    'ajv',
    'yaml',
    /^@bomb\.sh\/tab/,
    'rxjs',
  ],
  esbuildPlugins: [embedZstdCodec, embedCliPackages, bundledAssets],
  esbuildOptions(options) {
    // The modules of RxJS for ES2015 and later, of which the build keeps what is used.
    options.conditions = ['es2015', 'module']
    // The sources are files of the package.
    options.sourcesContent = false
  },
  splitting: true,
  sourcemap: true,
  clean: true,
  async onSuccess() {
    await bundleForPages()
    await writeExampleFolders(join(DIST, 'examples'))
  },
})
