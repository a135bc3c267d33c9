// `npm run crash -- --workloads 8`: crashes at every point of as many workloads of the filesystem storage. `--workload 7` is one of them again.
import { parseArgs } from 'node:util'
import { ensureInstalled, inProject, run } from './project.mjs'

const { values } = parseArgs({
  options: { workloads: { type: 'string', default: '8' }, workload: { type: 'string' } },
})

ensureInstalled()
process.env.CRASH_SEEDS = values.workload === undefined ? values.workloads : `=${values.workload}`
const vitest = inProject('node_modules', 'vitest', 'vitest.mjs')
run(process.execPath, [vitest, 'run', '--project', 'all', 'test/storage/filesystem/crash.test.ts'])
