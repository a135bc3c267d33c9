// `npm run release` checks, versions and publishes the package; `npm run release -- --dry-run` does
// everything but the last step, and changes nothing. Provenance needs `.github/workflows/release.yml`.
import { readdirSync, readFileSync } from 'node:fs'
import { inProject, run } from './project.mjs'

const isDryRun = process.argv.includes('--dry-run')
const pending = readdirSync(inProject('.changeset')).filter(
  (name) => name.endsWith('.md') && name !== 'README.md',
)
const manifest = readFileSync(inProject('package.json'), 'utf8')
if (manifest.includes('OWNER')) {
  const problem = 'package.json names no repository: replace OWNER (CONTRIBUTING.md "Publishing")'
  if (!isDryRun) throw new Error(problem)
  console.warn(`would fail: ${problem}`)
}
console.log(`${pending.length} changesets: ${pending.join(', ') || 'none'}`)
if (pending.length > 0) run('npx', ['--no-install', 'changeset', isDryRun ? 'status' : 'version'])
run('npm', ['run', 'build'])
for (const check of ['lint', 'typecheck', 'check:api', 'check:unused', 'check:package', 'check:size']) {
  run('npm', ['run', check])
}
run('npm', ['publish', '--provenance', '--access', 'public', ...(isDryRun ? ['--dry-run'] : [])])
