// Bundles what a browser would load, minified and gzipped, prints the sizes, and fails when one exceeds its budget.
// With --breakdown also which source files of the first bundle take how many bytes before compression.
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { inProject } from './project.mjs'

/** Kilobytes of 1,000 bytes, RxJS and all other dependencies included, but for what is loaded only when it is needed. */
const BUDGETS = [
  {
    name: 'engine + memory',
    code: `export { open } from 'headwater'; export { memory } from 'headwater/memory'`,
    kB: 27,
  },
  {
    name: 'engine + IndexedDB',
    code: `export { open } from 'headwater'; export { indexedDb } from 'headwater/indexeddb'`,
    kB: 30.5,
  },
  {
    name: 'the same + HTTP handler',
    code: `export { open } from 'headwater'; export { memory } from 'headwater/memory'; export { createHandler } from 'headwater/http'`,
    kB: 65,
  },
]

/** The sources in place of what is built of them, in which they cannot be told apart. */
const SOURCES = {
  headwater: 'src/index.ts',
  'headwater/memory': 'adapters/storage/memory/index.ts',
  'headwater/indexeddb': 'adapters/storage/indexeddb/index.ts',
}

async function bundle(code, options) {
  const { outputFiles, metafile } = await build({
    stdin: { contents: code, resolveDir: inProject('.') },
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'browser',
    splitting: true,
    outdir: 'out',
    write: false,
    metafile: true,
    absWorkingDir: inProject('.'),
    logLevel: 'error',
    ...options,
  })
  const { outputs } = metafile
  const contents = new Map(Object.keys(outputs).map((path, index) => [path, outputFiles[index].contents]))
  return { outputs, contents }
}

/** The entry and all that it imports, but for `import()`. */
function eager(outputs) {
  const paths = new Set(['out/stdin.js'])
  for (const path of paths) {
    for (const { kind, path: imported } of outputs[path].imports) {
      if (kind === 'import-statement') paths.add(imported)
    }
  }
  return [...paths]
}

async function sizeOf(code) {
  const { outputs, contents } = await bundle(code)
  return gzipSync(Buffer.concat(eager(outputs).map((path) => contents.get(path))), { level: 9 }).length / 1000
}

async function printBreakdown(code) {
  const alias = Object.fromEntries(Object.entries(SOURCES).map(([name, path]) => [name, inProject(path)]))
  const { outputs } = await bundle(code, { alias, external: ['zstd-codec'] })
  const inputs = eager(outputs).flatMap((path) => Object.entries(outputs[path].inputs))
  const sizes = inputs.map(([path, { bytesInOutput }]) => [bytesInOutput, path]).sort(([a], [b]) => b - a)
  for (const [bytes, path] of sizes) if (bytes > 0) console.log(String(bytes).padStart(6), path)
}

let failed = false
for (const { name, code, kB } of BUDGETS) {
  const size = await sizeOf(code)
  failed ||= size > kB
  console.log(`${size > kB ? 'too large' : 'ok'}: ${name}: ${size.toFixed(1)} kB of ${kB} kB`)
}
if (process.argv.includes('--breakdown')) await printBreakdown(BUDGETS[1].code)
process.exitCode = failed ? 1 : 0
