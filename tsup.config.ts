import { readFile } from 'node:fs/promises'
import type { Plugin } from 'esbuild'
import { defineConfig } from 'tsup'

/**
 * `zstd-codec` goes into the build, as a chunk of its own that is loaded when it is first needed: bundlers choke on the Node modules that
 * it asks for where it finds itself in Node, and on its second copy for runtimes without WebAssembly. The module needs nothing of the runtime
 * but WebAssembly, and is told so: then it asks for nothing, and adds no listeners to `process` either.
 */
const embedZstdCodec: Plugin = {
  name: 'embed-zstd-codec',
  setup(build) {
    build.onResolve({ filter: /^(fs|path|crypto)$|zstd-codec-binding\.js$/ }, ({ path, importer }) =>
      importer.includes('zstd-codec') ? { path, namespace: 'not-needed' } : undefined,
    )
    build.onLoad({ filter: /.*/, namespace: 'not-needed' }, () => ({ contents: 'module.exports = {}' }))
    build.onLoad({ filter: /zstd-codec-binding-wasm\.js$/ }, async ({ path }) => {
      const code = await readFile(path, 'utf8')
      const contents = code.replace(/ENVIRONMENT_(IS_WEB|IS_WORKER|HAS_NODE)=typeof [^;]*;/g, '')
      if (contents.length === code.length) throw new Error('zstd-codec has changed: see embedZstdCodec')
      return { contents }
    })
  },
}

/** `cli-progress` goes into the command line. It asks for two modules of Node by names that the build does not take for Node's. */
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

/** One entry for each subpath of `package.json`. Code that they share becomes chunks, so there is one copy of every class. */
export default defineConfig({
  entry: {
    index: 'src/index.ts',
    memory: 'adapters/storage/memory/index.ts',
    indexeddb: 'adapters/storage/indexeddb/index.ts',
    filesystem: 'adapters/storage/filesystem/index.ts',
    http: 'adapters/http/index.ts',
    node: 'adapters/node/index.ts',
    'aegis-256': 'adapters/aegis-256/index.ts',
    testing: 'adapters/testing/index.ts',
    conformance: 'src/storage/conformance/index.ts',
    cli: 'adapters/cli/main.ts',
  },
  format: 'esm',
  target: 'es2022',
  platform: 'neutral',
  external: [/^node:/],
  noExternal: ['zstd-codec', 'cli-progress'],
  esbuildPlugins: [embedZstdCodec, embedCliProgress],
  esbuildOptions(options) {
    // Puts constants where they are used. The bundlers of those who use the package can't: for them constants of other chunks are variables.
    options.minifySyntax = true
  },
  splitting: true,
  sourcemap: true,
  clean: true,
  dts: true,
})
