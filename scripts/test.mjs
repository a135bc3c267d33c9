// `npm test` builds the package, because some tests check what is published, and runs all tests. Arguments
// after `--` are passed to Vitest.
import { build, ensureInstalled, inProject, run } from './project.mjs'

ensureInstalled()
build()
run(process.execPath, [inProject('node_modules', 'vitest', 'vitest.mjs'), 'run', ...process.argv.slice(2)])
