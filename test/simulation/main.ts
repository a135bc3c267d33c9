import { parseArgs } from 'node:util'
import { report } from './report.ts'
import { shorten } from './shorten.ts'
import { run } from './simulation.ts'

// Run by scripts/sim.mjs, which checks the arguments, and by tests.
const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    seeds: { type: 'string', default: '1' },
    steps: { type: 'string', default: '400' },
    history: { type: 'boolean', default: false },
  },
})
const [first, seeds, steps] = [Number(values.seed), Number(values.seeds), Number(values.steps)]
let broken = 0
let lines = 0
let playing: number | undefined = first
// Node ends what waits and has nothing left to wait for.
process.on('exit', () => {
  if (playing === undefined) return
  console.error(`Seed ${playing} comes to no end.\nAgain: npm run sim -- --seed ${playing} --steps ${steps}`)
})
for (let seed = first; seed < first + seeds; seed++) {
  playing = seed
  const result = await run({ seed, steps })
  lines += result.lines.length
  if (values.history) for (const line of result.lines) console.log(line)
  if (result.violation !== undefined) {
    broken++
    console.log(`${report(await shorten({ seed, steps }, result))}\n`)
  } else if (seeds === 1 && !values.history) {
    console.log(`seed ${seed}, ${steps} steps: ${lines} lines of history, digest ${result.digest}`)
  }
}
playing = undefined
if (seeds > 1)
  console.log(
    `${seeds} seeds from ${first} on, ${steps} steps each: ${lines} lines of history, ${broken} broken`,
  )
process.exitCode = broken === 0 ? 0 : 1
