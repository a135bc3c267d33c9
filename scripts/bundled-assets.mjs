// Imports that are built on their own, for esbuild and Vite: `./program.tsx?function` is a function that
// holds the module and everything it imports, minified, and returns its exports; `./base.css?text` is the
// style sheet as a string, minified; `./openapi.yaml?json` is the document as a string of JSON.
import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build, transform } from 'esbuild'
import { parse } from 'yaml'

const ASSET = /^(.*)\?(function|text|json)$/

/**
 * Modules of the client that the console never runs: those of Node, append sessions, producers, codecs of
 * frames.
 */
const NOT_RUN =
  /[\\/]client[\\/](node[\\/]node-[\w-]+|session-appender|extended-append|compressed-frames)\.ts$|[\\/]zstd-module\.ts$/
/** What has no effect in a browser: codes of errors of Node, and compression, which needs modules of Node. */
const FOR_NODE = /[\\/]client[\\/](unsent|request-compression)\.ts$/
const WITHOUT_NODE = 'export const isUnsent = () => false; export class RequestCompression { gzip() {} }'
/**
 * What the console never uses of the API and of the client: observables, `listAll`, `exists`, producers, JSON
 * views, frames.
 */
const NOT_USED =
  /[\\/](runtime[\\/]observable|api[\\/](observables|exists-by|list-all|json-stream|json-codec|producer|append-all|input-sink|web-streams)|wire[\\/]frame)\.ts$/
/** The exports of these modules, as empty classes. */
const EMPTY_CLASSES = [
  ...['Observable', 'observe', 'existsBy', 'listAll', 'JsonStream', 'JsonCodec', 'Producer', 'appendAll'],
  ...['inputSink', 'readableOf', 'writableTo', 'FrameDecoder', 'FRAME_PAYLOAD_MAX'],
]
  .map((name) => `export class ${name} {}`)
  .join('\n')

/** Modules that others import on demand, in the code of the client and the engine. */
const ON_DEMAND = /\bloaded\(\s*'[^']*',\s*import\(('[^']+')\),?\s*\)|(?<!typeof )\bimport\(('[^']+')\)/g

/** Leaves out what the console does not use, and imports at once what others import on demand. */
export const withoutUnused = {
  name: 'without-unused',
  setup({ onLoad }) {
    onLoad({ filter: FOR_NODE }, () => ({ contents: WITHOUT_NODE }))
    onLoad({ filter: NOT_USED }, () => ({ contents: EMPTY_CLASSES }))
    onLoad({ filter: /[\\/](client|src)[\\/].*\.ts$/ }, async ({ path }) => ({
      contents: importedAtOnce(await readFile(path, 'utf8'), dirname(path)),
      loader: 'ts',
    }))
  },
}

/**
 * A script cannot load a module on demand, so everything that is imported becomes part of it. If it is not
 * imported at once, esbuild makes a function of each module that it needs, and keeps all of their exports.
 */
function importedAtOnce(code, directory) {
  const imports = []
  const replaced = code.replace(ON_DEMAND, (_, named, specifier = named) => {
    if (NOT_RUN.test(join(directory, specifier.slice(1, -1)))) {
      return "Promise.reject(new Error('not part of the page'))"
    }
    const name = `onDemand${imports.length}`
    imports.push(`import * as ${name} from ${specifier}\n`)
    return `Promise.resolve(${name})`
  })
  return imports.join('') + replaced
}

/** The code of the module for an asset. */
export async function assetModule(path, kind) {
  if (kind === 'text') {
    const { code } = await transform(await readFile(path, 'utf8'), { loader: 'css', minify: true })
    return `export default ${JSON.stringify(code)}`
  }
  if (kind === 'json') {
    const document = JSON.stringify(parse(await readFile(path, 'utf8')))
    return `export default ${JSON.stringify(document)}`
  }
  const { outputFiles } = await build({
    entryPoints: [path],
    bundle: true,
    write: false,
    minify: true,
    format: 'iife',
    globalName: 'program',
    platform: 'browser',
    target: 'es2022',
    legalComments: 'none',
    define: { 'process.env.NODE_ENV': '"production"' },
    plugins: [withoutUnused, bundledAssets],
    logLevel: 'error',
  })
  const [{ text: script }] = outputFiles
  if (/<!--|<\/script/i.test(script)) throw new Error(`${path} cannot be an inline script`)
  return `export default function () {\n${script}return program}\n`
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

/** The plugin of Vite. */
export const bundledAssetsOfVite = {
  name: 'bundled-assets',
  enforce: 'pre',
  async load(id) {
    const [, path, kind] = ASSET.exec(id) ?? []
    if (kind === undefined) return null
    return assetModule(path.startsWith('file:') ? fileURLToPath(path) : path, kind)
  },
}
