import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { gzipSync } from 'node:zlib'
import { build, type Plugin } from 'esbuild'
import { type MinifyOptions, minify } from 'terser'
import { defineConfig } from 'tsup'
import { assetModule, bundledAssets } from './scripts/bundled-assets.mjs'
import { renameModules, withoutBareImports } from './scripts/chunk-imports.mjs'
import { examplesArchive } from './scripts/examples-archive.mjs'
import { hoistConstants } from './scripts/hoist-constants.mjs'
import { isPackagedSource } from './scripts/packaged-sources.mjs'
import { reduceZstd } from './scripts/reduce-zstd.mjs'
import { reduceMap } from './scripts/source-maps.mjs'

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
      // File systems for browsers and Node, which are never mounted.
      replace(/if\(ENVIRONMENT_HAS_NODE\)\{var fs=[^}]*\}/, () => '')
      replace(/,"IDBFS":IDBFS,"NODEFS":NODEFS,"WORKERFS":WORKERFS/, () => '')
      // Without what is not needed, and compressed, the binary is a sixth as long. The module awaits what
      // `getBinary` returns.
      replace(/(?<=;base64,)[A-Za-z0-9+/=]{1000,}/, (base64) =>
        gzipSync(reduceZstd(Buffer.from(base64, 'base64')), { level: 9 }).toString('base64'),
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

/**
 * Leaves out docstrings, of which the build would keep those of class members: they are in the declarations
 * and in the sources of the package, and a third copy is 30 KB of the tarball. Keeps the numbers of lines.
 */
const withoutDocstrings: Plugin = {
  name: 'without-docstrings',
  setup({ onLoad }) {
    onLoad({ filter: /[\\/](src|adapters)[\\/].*\.tsx?$/, namespace: 'file' }, async ({ path }) => {
      const text = await readFile(path, 'utf8')
      const contents = text.replace(/^ *\/\*\*(?:(?!\*\/)[\s\S])*\*\/$/gm, (docstring) =>
        docstring.replace(/[^\n]/g, ''),
      )
      return { contents, loader: path.endsWith('x') ? 'tsx' : 'ts' }
    })
  },
}

const DIST = join(import.meta.dirname, 'dist')

/** The console, whose code `headwater/console` and `headwater/console-page` share, is a file of its own. */
const CONSOLE_PROGRAM = 'console-program.js'

/** Keeps imports of the module that the build adds as they are. */
const separateModules: Plugin = {
  name: 'separate-modules',
  setup(build) {
    build.onResolve({ filter: /\/program\.tsx\?function$/ }, () => ({
      path: `./${CONSOLE_PROGRAM}`,
      external: true,
    }))
  },
}

async function writeConsoleProgram(): Promise<void> {
  const path = join(import.meta.dirname, 'adapters/console/program.tsx')
  await writeFile(join(DIST, CONSOLE_PROGRAM), await assetModule(path, 'function'))
}

/** Leaves out what packs thousands of streams in memory: the storage does without it if it is missing. */
const withoutPacking: Plugin = {
  name: 'without-packing',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /\/packed\.js$/ }, ({ path }) => ({ path, namespace: 'left-out' }))
    onLoad({ filter: /.*/, namespace: 'left-out' }, () => ({ contents: '' }))
  },
}

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
    plugins: [withoutPacking],
  })
  // A second minifier finds what the first leaves.
  const code = await minified(outputFiles[0]!.text, { module: true, ecma: 2020, compress: { passes: 2 } })
  const banner = '/*! headwater and its dependencies: THIRD-PARTY-NOTICES.md */'
  await writeFile(join(DIST, 'browser.js'), `${banner}\n${code}\n`)
}

async function minified(text: string, options: MinifyOptions): Promise<string> {
  const { code } = await minify(text, options)
  if (code === undefined) throw new Error('the minifier returned nothing')
  return code
}

/** Shortens the names in the zstd module, which is not for reading: it came minified, and is a tenth of the package. */
async function shortenZstdModule(): Promise<void> {
  const name = (await readdir(DIST)).find((file) => /^zstd-module-.*\.js$/.test(file))
  if (name === undefined) throw new Error('the build has no zstd module')
  const path = join(DIST, name)
  const code = await minified(await readFile(path, 'utf8'), {
    module: true,
    ecma: 2020,
    compress: { passes: 3 },
  })
  await writeFile(path, code)
}

/**
 * Hoists constants, shortens imports, and keeps of the source maps what stack traces need and the sources in
 * the package.
 */
async function finishModules(): Promise<void> {
  for (const name of await readdir(DIST)) {
    if (!name.endsWith('.js.map')) continue
    const mapPath = join(DIST, name)
    const modulePath = mapPath.replace(/\.map$/, '')
    const bundled = await readFile(modulePath, 'utf8')
    const hoisted = hoistConstants(bundled, JSON.parse(await readFile(mapPath, 'utf8')))
    const { code, map } = withoutBareImports(hoisted.code, hoisted.map)
    const reduced = reduceMap(map, (source) =>
      isPackagedSource(relative(import.meta.dirname, join(DIST, source))),
    )
    if (reduced === undefined) {
      await rm(mapPath)
      await writeFile(modulePath, code.replace(/^\/\/# sourceMappingURL=.*\n?/m, ''))
    } else {
      await writeFile(mapPath, JSON.stringify(reduced))
      await writeFile(modulePath, code)
    }
  }
  renameModules(DIST)
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
  noExternal: ['zstd-codec', 'cli-progress'],
  esbuildPlugins: [embedZstdCodec, embedCliProgress, separateModules, bundledAssets, withoutDocstrings],
  esbuildOptions(options) {
    // The sources are files of the package.
    options.sourcesContent = false
  },
  splitting: true,
  sourcemap: true,
  clean: true,
  async onSuccess() {
    await finishModules()
    await writeConsoleProgram()
    await shortenZstdModule()
    await bundleForPages()
    await writeFile(join(DIST, 'examples.json.br'), examplesArchive())
  },
})
