// `npm run bench` runs all benchmarks, `npm run bench -- http-append --quick` one: see bench/README.md.
import { readdirSync } from 'node:fs'
import { buildSync } from 'esbuild'
import { ensureBuilt, inProject, run } from './project.mjs'

ensureBuilt()
const programs = readdirSync(inProject('bench', 'programs')).map((name) =>
  inProject('bench', 'programs', name),
)
buildSync({
  entryPoints: [inProject('bench', 'index.ts'), ...programs],
  outbase: inProject('bench'),
  // Beside the peers, so that imports find them.
  outdir: inProject('bench', 'dist'),
  bundle: true,
  platform: 'node',
  format: 'esm',
  packages: 'external',
  logLevel: 'warning',
})
run(process.execPath, [inProject('bench', 'dist', 'index.js'), ...process.argv.slice(2)])
