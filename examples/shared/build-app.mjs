// Bundles an app for browsers: `src/main.ts` or `src/main.tsx`, the files in `public`, and a service worker
// that caches them, if there is one.
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { cp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { build } from 'esbuild'

const OPTIONS = {
  bundle: true,
  write: false,
  minify: true,
  platform: 'browser',
  target: 'es2022',
  jsx: 'automatic',
  // Ignores `paths` in tsconfig.json, so that the built package is used instead of its sources.
  tsconfigRaw: {},
  // The published client uses HTTP/2 in Node only. The zstd codec has 860 kB, and pages cannot request zstd.
  // `fastq`, in the client of Durable Streams, queues what is appended during a request with it.
  define: { 'process.nextTick': 'queueMicrotask' },
  external: ['node:http2', './zstd-module-*'],
  logLevel: 'error',
}

/** Deletes and rewrites the output directory. Resolves to its path. */
export async function buildApp(directory, output = join(directory, 'dist')) {
  await rm(output, { recursive: true, force: true })
  await cp(join(directory, 'public'), output, { recursive: true })
  // A single file, so that nothing has to be loaded later, when there may be no network.
  const main = ['src/main.ts', 'src/main.tsx'].map((path) => join(directory, path)).find(existsSync)
  await bundle(main, join(output, 'main.js'), { format: 'esm' })
  const files = (await readdir(output)).sort()
  const ownFiles = JSON.stringify({ version: await hashOf(output, files), files: files.map(addressOf) })
  const worker = join(directory, 'service-worker.ts')
  if (!existsSync(worker)) return output
  await bundle(worker, join(output, 'service-worker.js'), {
    format: 'iife',
    define: { ...OPTIONS.define, OWN_FILES: ownFiles },
  })
  return output
}

async function bundle(source, target, options) {
  const { outputFiles } = await build({ ...OPTIONS, ...options, entryPoints: [source] })
  await writeFile(target, outputFiles[0].contents)
}

async function hashOf(directory, files) {
  const hash = createHash('sha256')
  for (const file of files) hash.update(file).update(await readFile(join(directory, file)))
  return hash.digest('hex').slice(0, 16)
}

function addressOf(file) {
  return file === 'index.html' ? './' : `./${file}`
}
