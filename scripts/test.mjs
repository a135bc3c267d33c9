// `npm test` runs the tests that need nothing but Node, without those that are tagged as slow, and prints what
// it took. Arguments after `--` are passed to Vitest.
import { ensureInstalled, inProject, runTimed } from './project.mjs'

ensureInstalled()
process.env.TEST_RUN = 'quick'
const vitest = inProject('node_modules', 'vitest', 'vitest.mjs')
const projects = ['--project', 'all', '--project', 'examples']
const args = ['run', ...projects, '--tags-filter', '!slow && !nightly', ...process.argv.slice(2)]
runTimed(process.execPath, [vitest, ...args])
