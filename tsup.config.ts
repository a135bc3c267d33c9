import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { build, type Plugin } from 'esbuild'
import { defineConfig } from 'tsup'
import { bundledAssets } from './scripts/bundled-assets.mjs'
import { writeExampleFolders } from './scripts/example-folders.mjs'

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
      replace(/ENVIRONMENT_IS_(NODE|SHELL)=(ENVIRONMENT|!)[^;]*;/g, () => '')
      replace(/(?<=ENVIRONMENT_IS_SHELL=)false/, () => 'true')
      return { contents }
    })
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
