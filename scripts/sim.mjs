// `npm run sim`: whole engines, played from 200 seeds. More with `-- --seeds 5000`, from another one on with `--seed 1001`, longer with `--steps 2000`; one seed again with
// `--seed 7 --steps 400`, and all that happened in it with `--history` (docs/simulation.md).
import { rmSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { ensureInstalled, inProject, run } from './project.mjs'

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    seeds: { type: 'string' },
    steps: { type: 'string', default: '400' },
    history: { type: 'boolean', default: false },
  },
})
const numbers = {
  seed: values.seed ?? '1',
  // Who names a seed wants to see that one.
  seeds: values.seeds ?? (values.seed === undefined && !values.history ? '200' : '1'),
  steps: values.steps,
}
for (const [name, value] of Object.entries(numbers)) {
  if (/^[1-9]\d{0,8}$/.test(value)) continue
  console.error(`--${name} must be a whole number from 1 to 999,999,999, not ${value}`)
  process.exit(2)
}

ensureInstalled()
const { build } = await import('esbuild')
const program = inProject('node_modules', '.cache', `sim-${process.pid}.mjs`)
await build({
  entryPoints: [inProject('test', 'simulation', 'main.ts')],
  outfile: program,
  bundle: true,
  platform: 'node',
  format: 'esm',
  packages: 'external',
  sourcemap: 'inline',
  logLevel: 'error',
})
process.on('exit', () => rmSync(program, { force: true }))
const given = Object.entries(numbers).flatMap(([name, value]) => [`--${name}`, value])
run(process.execPath, ['--enable-source-maps', program, ...given, ...(values.history ? ['--history'] : [])])
