// `npm run release` publishes the package; `npm run release -- --dry-run` does everything but the last step, and
// says what would prevent it. Provenance needs `.github/workflows/release.yml`, which runs `.ci/run` before.
import { readdirSync, readFileSync } from 'node:fs'
import { inProject, run } from './project.mjs'

const textOf = (...path) => readFileSync(inProject(...path), 'utf8')
const changesets = readdirSync(inProject('.changeset')).filter(
  (name) => name.endsWith('.md') && name !== 'README.md',
)

publish(process.argv.includes('--dry-run'))

function publish(isDryRun) {
  for (const problem of obstacles()) {
    if (!isDryRun) throw new Error(problem)
    console.warn(`would fail: ${problem}`)
  }
  run('npm', ['run', 'build'])
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
    yield `changesets are pending: ${changesets.join(', ')} (\`npx changeset version\`)`
  }
  if (textOf('CHANGELOG.md').includes(`## ${version} (unreleased)`)) {
    yield `CHANGELOG.md calls ${version} unreleased`
  }
}
