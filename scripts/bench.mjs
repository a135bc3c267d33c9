// `npm run bench`: every benchmark, or the one named: `npm run bench -- encryption`. Each prints its table. Further arguments are the benchmark's:
// `npm run bench -- filesystem reading --quick`.
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { basename } from 'node:path'
import { buildSync } from 'esbuild'
import { inProject, run } from './project.mjs'

/** A benchmark is a file, or, when it has rivals, a directory with an `index.ts` and the programs that this starts, `*-child.ts`. */
const programs = new Map()
for (const entry of readdirSync(inProject('bench'), { withFileTypes: true })) {
  const at = (...path) => inProject('bench', entry.name, ...path)
  if (entry.isFile() && entry.name.endsWith('.ts')) programs.set(basename(entry.name, '.ts'), [at()])
  else if (entry.isDirectory() && existsSync(at('index.ts'))) {
    const children = readdirSync(at()).filter((name) => name.endsWith('-child.ts'))
    programs.set(entry.name, [at('index.ts'), ...children.map((name) => at(name))])
  }
}

const [asked, ...args] = process.argv.slice(2)
if (asked !== undefined && !programs.has(asked)) {
  console.error(`There is no benchmark ${asked}. Benchmarks: ${[...programs.keys()].join(', ')}`)
  process.exit(2)
}

const peers = Object.keys(
  JSON.parse(readFileSync(inProject('bench', 'package.json'), 'utf8')).devDependencies,
)
let failed = false
for (const name of asked === undefined ? programs.keys() : [asked]) {
  const entryPoints = programs.get(name)
  // Beside the peers, so that they are found.
  const outdir = inProject('bench', 'dist', name)
  rmSync(outdir, { recursive: true, force: true })
  if (basename(entryPoints[0]) === 'index.ts') ensurePeers()
  buildSync({
    entryPoints,
    outdir,
    bundle: true,
    platform: 'node',
    format: 'esm',
    // The WebAssembly loader of libsodium does not survive being bundled as a module.
    external: ['libsodium-wrappers', 'esbuild', 'playwright-core', ...peers],
    logLevel: 'error',
  })
  const program = inProject('bench', 'dist', name, basename(entryPoints[0]).replace(/\.ts$/, '.js'))
  const { status } = spawnSync(process.execPath, [program, ...args], {
    stdio: 'inherit',
    cwd: inProject('.'),
  })
  failed ||= status !== 0
}
process.exitCode = failed ? 1 : 0

/** Installs what is measured against where it is missing. */
function ensurePeers() {
  const missing = peers.some((peer) => !existsSync(inProject('bench', 'node_modules', peer)))
  if (missing) run('npm', ['ci', '--prefix', 'bench'])
}
