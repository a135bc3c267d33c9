// `npm run test:postgres` runs tests whose outcome can depend on the storage on PostgreSQL, behind a proxy
// that fails. Arguments after `--` are passed to Vitest.
import { ensureInstalled, inProject, run } from './project.mjs'

ensureInstalled()
process.env.TEST_POSTGRES = 'all'
const vitest = inProject('node_modules', 'vitest', 'vitest.mjs')
run(process.execPath, [vitest, 'run', '--project', 'postgres', ...process.argv.slice(2)])
