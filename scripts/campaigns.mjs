// `npm run campaigns` searches for failures in a few hours: it runs everything that takes long, with seeds
// that no run had before. `npm run campaigns -- --seed N` repeats a run. All parts run; then it prints their
// seconds.
import { spawnSync } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'
import { assertInstalled, inProject, run } from './project.mjs'

const { values } = parseArgs({ options: { seed: { type: 'string' } } })
const seed = values.seed ?? String(randomInt(1, 1_000_000_000))
const vitest = [
  process.execPath,
  inProject('node_modules', 'vitest', 'vitest.mjs'),
  'run',
  // Properties take forty times as long as otherwise.
  ...['--testTimeout', '3600000'],
]
const script = (name, ...args) => ['npm', 'run', name, '--', ...args]

const PARTS = {
  properties: [...vitest, '--tags-filter', '!nightly'],
  nightly: [...vitest, '--project', 'all', '--tags-filter', 'nightly', '--exclude', 'test/campaigns/**'],
  postgres: script('test:postgres', '--testTimeout', '3600000'),
  sim: script('sim', '--seeds', '5000', '--seed', seed),
  devices: script('devices', '--seeds', '3000', '--seed', seed),
  fuzz: script('fuzz', '--inputs', '20000', '--seed', seed),
  crash: script('crash', '--workloads', '8', '--seed', seed),
  bucket: script('bucket', '--rounds', '40', '--seed', seed),
  kill: script('kill', '--rounds', '200', '--seed', seed),
  linearizability: script('linearizability', '--histories', '100', '--seed', seed),
  frameworks: script('check:frameworks'),
  installs: script('check:installs'),
  runtimes: script('check:runtimes'),
}

assertInstalled()
run('npm', ['run', 'build'])
const env = {
  ...process.env,
  FAST_CHECK_SEED: seed,
  FAST_CHECK_RUNS: '1000',
}
const report = Object.entries(PARTS).map(([name, [command, ...args]]) => {
  console.log(`\n${name}: seed ${seed}`)
  const startedAt = performance.now()
  const { status } = spawnSync(command, args, { cwd: inProject(), env, stdio: 'inherit' })
  return { name, failed: status !== 0, seconds: Math.round((performance.now() - startedAt) / 1000) }
})
for (const { name, failed, seconds } of report) {
  console.log(`${String(seconds).padStart(6)} s  ${name}${failed ? ' FAILED' : ''}`)
}
console.log(`seed ${seed}: a seed that fails belongs into the regressions of its campaign`)
process.exitCode = report.some(({ failed }) => failed) ? 1 : 0
