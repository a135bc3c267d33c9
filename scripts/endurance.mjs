// `npm run endurance`: 2,000 followers in 50 rounds, 10,000 abandoned long polls, readers that never read, full storages, each on every storage. One kind of them with `-- --scenario "followers"`.
import { parseArgs } from 'node:util'
import { ensureInstalled, inProject, run } from './project.mjs'

const { values } = parseArgs({ options: { scenario: { type: 'string' } } })

ensureInstalled()
process.env.ENDURANCE = 'whole'
// The names of tests are searched by a regular expression.
const scenario = values.scenario?.replaceAll(/[^\w ]/g, '\\$&')
const named = scenario === undefined ? [] : ['--testNamePattern', scenario]
const files = ['memory', 'filesystem'].map((name) => `test/endurance/${name}.test.ts`)
const vitest = inProject('node_modules', 'vitest', 'vitest.mjs')
run(process.execPath, [vitest, 'run', '--project', 'all', ...named, ...files])
