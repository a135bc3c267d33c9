// `npm run NAME -- --option value` runs a campaign of test/campaigns; its README.md lists the options.
import { rmSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { assertInstalled, inProject, run } from './project.mjs'

/**
 * `numbers` are options with a default or `undefined`; `texts` and `flags` have no default. `files` are the
 * Vitest files without `.test.ts`, or folders. `filter` is the text option that selects tests by a part of
 * their names. A campaign with a `program` runs without Vitest. One with `inputs` runs properties of
 * fast-check.
 */
const CAMPAIGNS = {
  bucket: { numbers: { rounds: 40, outage: 60, seed: 1 }, files: ['bucket/bucket'] },
  crash: { numbers: { workloads: 8, workload: undefined, seed: 1 }, files: ['crash/crash'] },
  devices: {
    numbers: { seed: undefined, seeds: undefined, steps: 60 },
    flags: ['history', 'random'],
    program: 'devices/program',
  },
  fuzz: { numbers: { inputs: 10_000, seed: 1 }, texts: ['target'], filter: 'target', files: ['fuzz/'] },
  kill: { numbers: { rounds: 200, seed: 1 }, files: ['kill/kill'] },
  linearizability: {
    numbers: { histories: 500, seed: 1 },
    texts: ['target'],
    filter: 'target',
    files: ['linearizability/campaign'],
  },
  sim: {
    numbers: { seed: undefined, seeds: undefined, steps: 400 },
    flags: ['history', 'random'],
    program: 'simulation/program',
  },
}

const [name, ...args] = process.argv.slice(2)
const { numbers = {}, texts = [], flags = [], filter, files, program } = CAMPAIGNS[name]
const options = parseOptions()
assertInstalled()
process.env.TEST_POSTGRES = 'true'
process.env.CAMPAIGN = JSON.stringify({ name, options })
if (options.inputs !== undefined) {
  process.env.FAST_CHECK_RUNS = `${options.inputs}`
  process.env.FAST_CHECK_SEED = `${options.seed}`
}
if (program === undefined) runTests()
else await runProgram()

function parseOptions() {
  const strings = [...Object.keys(numbers), ...texts].map((option) => [option, { type: 'string' }])
  const booleans = flags.map((option) => [option, { type: 'boolean' }])
  const { values } = parseArgs({ args, options: Object.fromEntries([...strings, ...booleans]) })
  for (const option of Object.keys(numbers)) {
    if (values[option] !== undefined) values[option] = numberOf(option, values[option])
  }
  return { ...numbers, ...values }
}

function numberOf(option, text) {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text)
  console.error(`--${option} must be an integer from 1 to 999,999,999, not ${text}`)
  process.exit(2)
}

function runTests() {
  // Vitest matches test names with a regular expression.
  const pattern = options[filter]?.replaceAll(/[^\w ]/g, '\\$&')
  const selected = pattern === undefined ? [] : ['--testNamePattern', pattern]
  const paths = files.map((file) => `test/campaigns/${file}${file.endsWith('/') ? '' : '.test.ts'}`)
  const vitest = inProject('node_modules', 'vitest', 'vitest.mjs')
  // They print how far they are.
  const shown = ['--silent', 'false']
  const limits = options.inputs === undefined ? [] : ['--testTimeout', '0']
  run(process.execPath, [vitest, 'run', '--project', 'all', ...shown, ...limits, ...selected, ...paths])
}

async function runProgram() {
  const { build } = await import('esbuild')
  const { bundledAssets } = await import('./bundled-assets.mjs')
  const outfile = inProject('node_modules', '.cache', `${name}-${process.pid}.mjs`)
  process.on('exit', () => rmSync(outfile, { force: true }))
  await build({
    entryPoints: [inProject('test', 'campaigns', `${program}.ts`)],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    packages: 'external',
    plugins: [bundledAssets],
    sourcemap: 'inline',
    logLevel: 'warning',
  })
  run(process.execPath, ['--enable-source-maps', outfile])
}
