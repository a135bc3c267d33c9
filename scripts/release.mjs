// `npm run release -- --version` collects the changesets: it raises the version and writes the changelog.
// `npm run release` checks and publishes the package; `npm run release -- --dry-run` does everything but the
// last step, and says what would prevent it. Provenance needs `.github/workflows/release.yml`.
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { nextVersion, parseChangeset, withVersion } from './changesets.mjs'
import { inProject, run } from './project.mjs'

const textOf = (...path) => readFileSync(inProject(...path), 'utf8')
const names = readdirSync(inProject('.changeset')).filter(
  (name) => name.endsWith('.md') && name !== 'README.md',
)
const changesets = names.map((name) => parseChangeset(name, textOf('.changeset', name)))

if (process.argv.includes('--version')) raiseVersion()
else publish(process.argv.includes('--dry-run'))

function raiseVersion() {
  if (changesets.length === 0) throw new Error('there are no changesets')
  const { version } = JSON.parse(textOf('package.json'))
  const next = nextVersion(
    version,
    changesets.map(({ kind }) => kind),
  )
  run('npm', ['version', next, '--no-git-tag-version'])
  writeFileSync(inProject('CHANGELOG.md'), withVersion(textOf('CHANGELOG.md'), next, changesets))
  for (const name of names) rmSync(inProject('.changeset', name))
  console.log(`${version} becomes ${next}: review and commit it`)
}

function publish(isDryRun) {
  for (const problem of obstacles()) {
    if (!isDryRun) throw new Error(problem)
    console.warn(`would fail: ${problem}`)
  }
  run('npm', ['run', 'build'])
  for (const check of ['lint', 'typecheck', 'check:api', 'check:unused', 'check:package', 'check:size']) {
    run('npm', ['run', check])
  }
  run('npm', ['publish', '--provenance', '--access', 'public', ...(isDryRun ? ['--dry-run'] : [])])
}

/** What has to be done before the package can be published. */
function* obstacles() {
  const manifest = textOf('package.json')
  const { version } = JSON.parse(manifest)
  if (manifest.includes('OWNER')) {
    yield 'package.json names no repository: replace OWNER (CONTRIBUTING.md "Publishing")'
  }
  if (changesets.length > 0) {
    yield `changesets are pending: ${names.join(', ')} (\`npm run release -- --version\`)`
  }
  if (textOf('CHANGELOG.md').includes(`## ${version} (unreleased)`)) {
    yield `CHANGELOG.md calls ${version} unreleased`
  }
}
