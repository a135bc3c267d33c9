// `npm run linearizability -- --histories 500`: as many concurrent histories of each target, recorded and checked. `--seed` is the first seed,
// `--target` a part of the name of the targets, `--write` a directory for the histories as JSON lines (docs/linearizability.md).
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { ensureInstalled, inProject, run } from './project.mjs'

const { values } = parseArgs({
  options: {
    histories: { type: 'string', default: '500' },
    seed: { type: 'string', default: '1' },
    target: { type: 'string' },
    write: { type: 'string' },
  },
})
for (const name of ['histories', 'seed']) {
  if (/^[1-9]\d{0,8}$/.test(values[name])) continue
  console.error(`--${name} must be a whole number from 1 to 999,999,999, not ${values[name]}`)
  process.exit(2)
}

ensureInstalled()
process.env.LINEARIZABILITY_HISTORIES = values.histories
process.env.LINEARIZABILITY_SEED = values.seed
if (values.write !== undefined) process.env.LINEARIZABILITY_DIRECTORY = resolve(values.write)

const files = ['linearizability/storages', 'linearizability/http', 'browser/linearizability'].map(
  (name) => `test/${name}.test.ts`,
)
// The names of tests are searched by a regular expression.
const target = values.target?.replaceAll(/[^\w ]/g, '\\$&')
const named = target === undefined ? [] : ['--testNamePattern', target]
const vitest = inProject('node_modules', 'vitest', 'vitest.mjs')
run(process.execPath, [vitest, 'run', '--project', 'all', ...named, ...files])
