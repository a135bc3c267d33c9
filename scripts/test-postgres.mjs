// `npm run test:postgres` starts temporary clusters of PostgreSQL, and runs the tests that need one: those of
// the storage, and, behind a proxy that fails, those whose outcome can depend on it. Arguments after `--` are
// passed to Vitest.
import { assertInstalled, inProject, run } from './project.mjs'

assertInstalled()
process.env.TEST_POSTGRES = 'true'
const vitest = [inProject('node_modules', 'vitest', 'vitest.mjs'), 'run', '--tags-filter', '!nightly']
const FILES = ['test/storage/postgres/', 'test/durable-streams/conformance.test.ts']
const more = process.argv.slice(2)
run(process.execPath, [...vitest, '--project', 'postgres', ...more])
run(process.execPath, [...vitest, '--project', 'all', ...FILES, ...more])
