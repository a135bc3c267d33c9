// `npm test`: builds, because some tests look at what is published, and runs all tests. Arguments after `--` go to vitest.
import { build, ensureInstalled, inProject, run } from './project.mjs'

ensureInstalled()
build()
run(process.execPath, [inProject('node_modules', 'vitest', 'vitest.mjs'), 'run', ...process.argv.slice(2)])
