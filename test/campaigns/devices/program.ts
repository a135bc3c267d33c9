import { campaignOf, replayCommand } from '../harness/campaign.ts'
import { Progress } from '../harness/progress.ts'
import { type DevicesResult, run } from './simulation.ts'

const LINES_SHOWN = 40

const devices = campaignOf('devices', {
  seed: undefined as number | undefined,
  seeds: undefined as number | undefined,
  steps: 60,
  history: false,
})
const { seed: first = 1, steps, history } = devices.options
const { seeds = devices.options.seed === undefined ? 200 : 1 } = devices.options
const progress = new Progress(devices, 'seeds', seeds)
let lines = 0
let current: number | undefined
// Node exits if everything left waits for something that cannot happen.
process.on('exit', () => {
  if (current === undefined) return
  console.error(`Seed ${current} comes to no end.\nReplay: ${replayOf(current)}`)
})
for (let seed = first; seed < first + seeds; seed++) {
  current = seed
  const result = await run({ seed, steps, onEvent: history ? (line) => console.log(line) : undefined })
  lines += result.lines.length
  if (result.violation === undefined) progress.pass()
  else {
    console.log(`${report(result)}\n`)
    progress.fail()
  }
}
current = undefined
progress.close(`${steps} steps each, ${lines} events`)
process.exitCode = progress.failed === 0 ? 0 : 1

function report({ seed, violation, settings, lines }: DevicesResult): string {
  return [
    `Seed ${seed}:`,
    `expected: ${violation!.expected}`,
    `found:    ${violation!.found}`,
    `The seed's settings: ${JSON.stringify(settings)}`,
    ...lines.slice(-LINES_SHOWN).map((line) => `  ${line}`),
    `Replay: ${replayOf(seed)}`,
  ].join('\n')
}

function replayOf(seed: number): string {
  return replayCommand('devices', { seed, steps, history: true })
}
