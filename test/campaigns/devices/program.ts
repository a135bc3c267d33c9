import { campaignOf } from '../harness/campaign.ts'
import { Progress } from '../harness/progress.ts'
import { replayOf, report } from './report.ts'
import { run } from './simulation.ts'

const devices = campaignOf('devices', {
  seed: undefined as number | undefined,
  seeds: undefined as number | undefined,
  steps: 60,
  history: false,
})
const { seed: first = 1, steps, history } = devices.options
const { seeds = devices.options.seed === undefined && !history ? 200 : 1 } = devices.options
const progress = new Progress({ ...devices, runsAll: devices.runsAll && !history }, 'seeds', seeds)
const onEvent = history ? (line: string) => console.log(line) : undefined
let lines = 0
let current: number | undefined
// Node exits if everything left waits for something that cannot happen.
process.on('exit', () => {
  if (current === undefined) return
  console.error(`Seed ${current} comes to no end.\nReplay: ${replayOf(current, steps)} --history`)
})
for (let seed = first; seed < first + seeds; seed++) {
  current = seed
  const result = await run({ seed, steps, onEvent })
  lines += result.lines.length
  if (result.violation === undefined) progress.pass()
  else {
    console.log(`${report(result)}\n`)
    progress.fail()
  }
}
current = undefined
progress.close(`${steps} steps each, ${lines} lines of history`)
process.exitCode = progress.failed === 0 ? 0 : 1
