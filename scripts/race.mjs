// `npm run race -- --runs 20`: as many races of two tabs of Chromium, each of 1,000 conditional appends.
import { parseArgs } from 'node:util'
import { ensureInstalled, inProject, run } from './project.mjs'

const { values } = parseArgs({ options: { runs: { type: 'string', default: '20' } } })

ensureInstalled()
process.env.RACE_RUNS = values.runs
const vitest = inProject('node_modules', 'vitest', 'vitest.mjs')
run(process.execPath, [vitest, 'run', '--project', 'all', 'test/browser/indexeddb-race.test.ts'])
