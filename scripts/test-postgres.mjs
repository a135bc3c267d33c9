// `npm run test:postgres` starts temporary clusters of PostgreSQL, and runs the tests that need one: those of
// the storage and its campaigns, the published suite of Durable Streams, and, behind a proxy that fails, all
// tests whose outcome can depend on the storage. Arguments after `--` are passed to Vitest.
import { ensureInstalled, inProject, run } from './project.mjs'

await ensureInstalled()
process.env.TEST_POSTGRES = 'true'
const vitest = inProject('node_modules', 'vitest', 'vitest.mjs')
const more = process.argv.slice(2)
run(process.execPath, [vitest, 'run', '--project', 'postgres', ...more])
const files = [
  'test/storage/postgres/',
  'linearizability/postgres.test.ts',
  'campaigns/processes/',
  'durable-streams/conformance.test.ts',
]
run(process.execPath, [vitest, 'run', '--project', 'all', '--tags-filter', '!nightly', ...files, ...more])
