// `npm run test:postgres` starts temporary clusters of PostgreSQL, and runs the tests that need one: those of
// the storage, and, behind a proxy that fails, those whose outcome can depend on it. Arguments after `--` are
// passed to Vitest.
import { assertInstalled, inProject, runToEnd } from './project.mjs'

assertInstalled()
process.env.TEST_POSTGRES = 'true'
const vitest = [inProject('node_modules', 'vitest', 'vitest.mjs'), 'run', '--tags-filter', '!nightly']
const FILES = ['test/storage/postgres/', 'test/durable-streams/conformance.test.ts']
const more = process.argv.slice(2)
const runs = [
  ['--project', 'postgres'],
  ['--project', 'all', ...FILES],
]
// The second one tells more, also if the first one fails.
const codes = runs.map((args) => runToEnd(process.execPath, [...vitest, ...args, ...more]))
process.exitCode = Math.max(...codes)
