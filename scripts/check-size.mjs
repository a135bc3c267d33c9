// Bundles what a page with plain streams loads, prints the minified and gzipped sizes, and fails if one
// exceeds its budget. With --breakdown, also prints the uncompressed size of each source file of the
// IndexedDB bundle.
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { inProject } from './project.mjs'

/**
 * Chunks that an app does not load which appends plain records and follows a plain stream, not even to create
 * the stream in process: tokens, ciphers, compression, `/metrics`, `/openapi.json`, append sessions,
 * producers and `appendAll`, the reading of JSON, the management of basins and streams, what frees records in
 * IndexedDB, what packs or evicts thousands of streams, and the rules and headers of producers; of the client
 * encryption keys, events for servers without frames, error responses, appends that were repeated and what
 * only Node needs; of mirrors the earlier history, and synced basins. All other `import()` counts.
 */
const ON_DEMAND =
  /^(tokens|stream-codec|cipher-availability|codecs|session-parts|reclaim|control|(gzip|zstd)-module|prometheus|openapi|node-(sessions|transport|http2?)|unsent|compressed-frames|event-stream|decode-error|session-appender|repeated-append|key-header|account|earlier-history|synced-basin|append-rules|extended-append|packed|eviction)\b/

/** Chunks that `headwater/sync` loads when it connects, sends, reads, restarts or fetches earlier history. */
const ON_DEMAND_OF_SYNC = /^(mirror-connection|outbox-sender|synced-changes|earlier-history|synced-basin)\b/

/** Chunks that no browser loads, or only for compression that it does not ask for. */
const NOT_IN_BROWSERS = /^((gzip|zstd)-module|node-(sessions|transport|http2?)|unsent)\b/

/**
 * In KiB, including all dependencies: what is loaded first, and where `totalKiB` is given, also everything
 * that a browser may load later. Of an entry that is used beside the engine, what it adds to a bundle
 * (`beyond`) counts.
 */
const BUDGETS = [
  {
    name: 'engine + memory',
    code: `export { open } from 'headwater'; export { memory } from 'headwater/memory'`,
    KiB: 42.1,
  },
  {
    name: 'engine + IndexedDB',
    code: `export { open } from 'headwater'; export { indexedDb } from 'headwater/indexeddb'`,
    KiB: 50,
  },
  {
    name: 'engine + memory + HTTP handler',
    code: `export { open } from 'headwater'; export { memory } from 'headwater/memory'; export { createHandler } from 'headwater/http'`,
    KiB: 65.8,
  },
  {
    name: 'headwater/durable-streams, beyond headwater/http',
    code: `export * from 'headwater/durable-streams'; export * from 'headwater/http'`,
    beyond: `export * from 'headwater/http'`,
    KiB: 10,
  },
  {
    name: 'headwater/client, without the engine',
    code: `export { connect } from 'headwater/client'`,
    external: ['node:http2'],
    KiB: 23.7,
    totalKiB: 37.5,
  },
  {
    name: 'headwater/react, vue, svelte and solid, each beyond its framework and the engine',
    each: ['react', 'vue', 'svelte', 'solid'].map((entry) => ({
      code: `export { open } from 'headwater'; export * from 'headwater/${entry}'`,
      beyond: `export { open } from 'headwater'`,
      external: ['react', 'vue', 'solid-js'],
    })),
    KiB: 1,
  },
  {
    name: 'headwater/sync, beyond the engine',
    code: `export { open } from 'headwater'; export { memory } from 'headwater/memory'; export * from 'headwater/sync'`,
    beyond: `export { open } from 'headwater'; export { memory } from 'headwater/memory'`,
    KiB: 9,
  },
  {
    name: 'headwater/sync, with what it loads on first use',
    code: `export { open } from 'headwater'; export { memory } from 'headwater/memory'; export * from 'headwater/sync'`,
    beyond: `export { open } from 'headwater'; export { memory } from 'headwater/memory'`,
    isLater: (name) => ON_DEMAND.test(name),
    KiB: 19,
  },
  {
    name: 'headwater/fold, beyond the engine',
    code: `export { open } from 'headwater'; export { memory } from 'headwater/memory'; export * from 'headwater/fold'`,
    beyond: `export { open } from 'headwater'; export { memory } from 'headwater/memory'`,
    KiB: 4.5,
  },
  {
    name: 'headwater/browser, one file with everything but the handler',
    document: () => readFile(inProject('dist/browser.js')),
    KiB: 70.3,
  },
  {
    name: 'headwater/console, with its charts and styles',
    code: `export { mountConsole } from 'headwater/console'`,
    KiB: 71.7,
  },
  {
    name: 'the page that headwater serve shows, as it is sent',
    document: async () => (await import('headwater/console-page')).consolePage().html,
    KiB: 69.7,
  },
]

/** For the breakdown, which cannot distinguish sources in the built package. */
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

function isOnDemand(name) {
  return ON_DEMAND.test(name) || ON_DEMAND_OF_SYNC.test(name)
}

function isNotInBrowsers(name) {
  return NOT_IN_BROWSERS.test(name)
}

/** The paths of the entry and of everything that it imports, except what is loaded later. */
function loadedChunks(outputs, isLater = isOnDemand) {
  const paths = new Set(['out/stdin.js'])
  for (const path of paths) {
    for (const { path: imported, external } of outputs[path].imports) {
      if (!external && !isLater(basename(imported))) paths.add(imported)
    }
  }
  return [...paths]
}

async function sizeOf({ each, code, beyond, document, external = [], isLater = isOnDemand }) {
  if (each !== undefined) return Math.max(...(await Promise.all(each.map(sizeOf))))
  if (document !== undefined) return gzipSync(await document(), { level: 9 }).length / 1024
  if (beyond !== undefined)
    return (await sizeOf({ code, external, isLater })) - (await sizeOf({ code: beyond, external, isLater }))
  const { outputs, contents } = await bundle(code, { external })
  const chunks = loadedChunks(outputs, isLater).map((path) => Buffer.from(contents.get(path)).toString())
  return gzipSync(withStableNames(chunks.join('')), { level: 9 }).length / 1024
}

/** Replaces the hashes in the names of chunks, which differ between directories, and hardly compress. */
function withStableNames(text) {
  const names = new Map()
  return text.replaceAll(/(?<=-)[0-9A-Z]{8}(?=\.js")/g, (hash) => {
    const name =
      names.get(hash) ?? createHash('sha256').update(`${names.size}`).digest('base64url').slice(0, 8)
    names.set(hash, name)
    return name
  })
}

async function printBreakdown(code) {
  const alias = Object.fromEntries(Object.entries(SOURCES).map(([name, path]) => [name, inProject(path)]))
  const { outputs } = await bundle(code, { alias, external: ['zstd-codec'] })
  const inputs = loadedChunks(outputs).flatMap((path) => Object.entries(outputs[path].inputs))
  const sizes = inputs.map(([path, { bytesInOutput }]) => [bytesInOutput, path]).sort(([a], [b]) => b - a)
  for (const [bytes, path] of sizes) if (bytes > 0) console.log(String(bytes).padStart(6), path)
}

let failed = false
function check(name, size, KiB) {
  failed ||= size > KiB
  console.log(`${size > KiB ? 'too large' : 'ok'}: ${name}: ${size.toFixed(2)} KiB of ${KiB} KiB`)
}
for (const budget of BUDGETS) {
  const { name, KiB, totalKiB } = budget
  check(name, await sizeOf(budget), KiB)
  if (totalKiB === undefined) continue
  check(
    `${name}, with all that it may load later`,
    await sizeOf({ ...budget, isLater: isNotInBrowsers }),
    totalKiB,
  )
}
if (process.argv.includes('--breakdown')) await printBreakdown(BUDGETS[1].code)
process.exitCode = failed ? 1 : 0
