// `npm run kill -- --rounds 200`: processes that append are killed at chosen moments, so many times, and everything that they acknowledged has to be there.
import { parseArgs } from 'node:util'
import { ensureInstalled, inProject, run } from './project.mjs'

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '200' } } })

ensureInstalled()
process.env.KILL_ROUNDS = values.rounds
const vitest = inProject('node_modules', 'vitest', 'vitest.mjs')
run(process.execPath, [vitest, 'run', 'test/storage/filesystem/kill.test.ts'])
