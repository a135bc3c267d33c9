// `node scripts/write-fixtures.mjs` writes the compatibility fixture of each storage format that has none
// yet, into `test/compatibility/fixtures`. Run it before each release, in Node 24; it needs PostgreSQL.
import { rmSync } from 'node:fs'
import { build } from 'esbuild'
import { inProject, run } from './project.mjs'

const outfile = inProject('node_modules', '.cache', `fixtures-${process.pid}.mjs`)
process.on('exit', () => rmSync(outfile, { force: true }))
await build({
  entryPoints: [inProject('test', 'compatibility', 'write.ts')],
  outfile,
  bundle: true,
  platform: 'node',
  format: 'esm',
  packages: 'external',
  logLevel: 'warning',
})
run(process.execPath, [outfile, inProject('test', 'compatibility', 'fixtures')])
