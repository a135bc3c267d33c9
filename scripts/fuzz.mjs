// `npm run fuzz`: a million inputs for the decoders. More with `-- --inputs 10000000`, others with `--seed 7`, one decoder with `--target frames`, one of its inputs with `--case 12`.
import { parseArgs } from 'node:util'
import { ensureInstalled, inProject, run } from './project.mjs'

const { values } = parseArgs({
  options: {
    inputs: { type: 'string', default: '1000000' },
    seed: { type: 'string', default: '1' },
    target: { type: 'string' },
    case: { type: 'string' },
  },
})

ensureInstalled()
for (const [name, value] of Object.entries(values)) process.env[`FUZZ_${name.toUpperCase()}`] = value
const vitest = inProject('node_modules', 'vitest', 'vitest.mjs')
run(process.execPath, [vitest, 'run', '--project', 'all', 'test/fuzz/campaign.test.ts'])
