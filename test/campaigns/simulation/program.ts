import { campaignOf } from '../harness/campaign.ts'
import { Progress } from '../harness/progress.ts'
import { replayOf, report, shorten } from './report.ts'
import { run } from './simulation.ts'

const sim = campaignOf('sim', {
  seed: undefined as number | undefined,
  seeds: undefined as number | undefined,
  steps: 400,
  history: false,
})
const { seed: first = 1, steps, history } = sim.options
const { seeds = sim.options.seed === undefined && !history ? 200 : 1 } = sim.options
const progress = new Progress(sim, 'seeds', seeds)
let lines = 0
let current: number | undefined = first
// Node exits if everything left waits for something that cannot happen.
process.on('exit', () => {
  if (current === undefined) return
  console.error(`Seed ${current} comes to no end.\nReplay: ${replayOf(current, steps)}`)
})
for (let seed = first; seed < first + seeds; seed++) {
  current = seed
  const result = await run({ seed, steps })
  lines += result.lines.length
  if (history) for (const line of result.lines) console.log(line)
  if (result.violation === undefined) {
    progress.pass()
  } else {
    console.log(`${report(await shorten({ seed, steps }, result))}\n`)
    progress.fail()
  }
  if (seeds === 1 && !history) console.log(`Digest of the history: ${result.digest}`)
}
current = undefined
if (!history) progress.close(`${steps} steps each, ${lines} lines of history`)
process.exitCode = progress.failed === 0 ? 0 : 1
