// `npm run soak -- --seconds 60`: 100 appenders and 100 followers on one stream for that long, over every transport.
import { parseArgs } from 'node:util'
import { ensureBuilt, ensureInstalled, inProject, run } from './project.mjs'

const { values } = parseArgs({ options: { seconds: { type: 'string', default: '60' } } })

ensureInstalled()
ensureBuilt()
process.env.SOAK_SECONDS = values.seconds
run(process.execPath, [inProject('node_modules', 'vitest', 'vitest.mjs'), 'run', 'test/interop/soak.test.ts'])
