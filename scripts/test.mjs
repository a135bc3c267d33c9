// `npm test` builds the package, because some tests check what is published, and runs the tests without those
// that take long. `npm run test:full` runs all of them. Arguments after `--` are passed to Vitest.
import { build, ensureInstalled, inProject, run } from './project.mjs'

const args = process.argv.slice(2)
const isFull = args[0] === '--full'
await ensureInstalled()
build()
if (!isFull) process.env.TEST_RUN = 'quick'
run(process.execPath, [
  inProject('node_modules', 'vitest', 'vitest.mjs'),
  'run',
  ...(isFull ? args.slice(1) : args),
])
