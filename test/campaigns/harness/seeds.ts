import { randomInt } from 'node:crypto'
import { campaignOf, replayCommand, seedsFrom } from './campaign.ts'
import { Progress } from './progress.ts'
import type { Played, PlayOptions } from './scheduler.ts'

const LINES_SHOWN = 40
const SEEDS = 200

/** A campaign of runs that depend on nothing but a seed. */
export interface SeedCampaign {
  readonly name: string
  /** The number of steps of a seed. */
  readonly steps: number
  /** Seeds that have failed once. They are always played. */
  readonly regressions: readonly number[]
  readonly play: (options: PlayOptions) => Promise<Played>
}

/** Plays the seeds that the command line asks for, and prints each failure and how to replay it. */
export async function playSeeds(campaign: SeedCampaign): Promise<void> {
  const { name, play } = campaign
  const { options, runsAll } = campaignOf(name, {
    seed: undefined as number | undefined,
    seeds: undefined as number | undefined,
    steps: campaign.steps,
    history: false,
    random: false,
  })
  const { seed, steps, history, random } = options
  const first = seed ?? (random ? randomInt(1, 900_000_000) : 1)
  const isReplay = options.seeds === undefined && (seed !== undefined || history)
  const seeds = seedsFrom(first, options.seeds ?? (isReplay ? 1 : SEEDS))
  const all = isReplay ? seeds : [...campaign.regressions, ...seeds]
  const progress = new Progress({ name, runsAll: runsAll && !history }, 'seeds', all.length)
  if (!history) console.log(`${name}: seeds ${first} to ${seeds.at(-1)}`)
  let lines = 0
  let current: number | undefined
  // Node exits if everything left waits for something that cannot happen.
  process.on('exit', () => {
    if (current === undefined) return
    console.error(`Seed ${current} comes to no end.\nReplay: ${replayOf(name, current, steps)}`)
    process.exitCode = 1
  })
  for (current of all) {
    const played = await play({ seed: current, steps, onLine: history ? console.log : undefined })
    lines += played.lines.length
    if (played.violation === undefined) progress.pass()
    else {
      console.log(`${reportOf(name, history ? played : await shortest(play, played))}\n`)
      progress.fail()
    }
  }
  current = undefined
  progress.close(`${steps} steps each, ${lines} lines of history`)
  process.exitCode = progress.failed === 0 ? 0 : 1
}

/** The broken promise, the events before it, and the command that replays it. */
export function reportOf(name: string, { seed, steps, isAtEnd, violation, settings, lines }: Played): string {
  const { expected, found } = violation!
  return [
    `Seed ${seed}, ${isAtEnd ? `after step ${steps}, at the end` : `at step ${steps}`}:`,
    `expected: ${expected}`,
    `found:    ${found}`,
    `The seed's settings: ${JSON.stringify(settings)}`,
    `The last of ${lines.length} lines of its history:`,
    ...lines.slice(-LINES_SHOWN).map((line) => `  ${line}`),
    `Replay: ${replayOf(name, seed, steps)}`,
    `The whole history: ${replayOf(name, seed, steps)} --history`,
  ].join('\n')
}

function replayOf(name: string, seed: number, steps: number): string {
  return replayCommand(name, { seed, steps })
}

/**
 * A violation with fewer steps, found by halving. One found by a step needs all steps before it. One found at
 * the end may need fewer, because the steps of a seed do not depend on their number.
 */
async function shortest(play: SeedCampaign['play'], failed: Played): Promise<Played> {
  if (!failed.isAtEnd) return failed
  let found = failed
  let passingSteps = 0
  while (found.steps - passingSteps > 1) {
    const steps = Math.floor((passingSteps + found.steps) / 2)
    const played = await play({ seed: failed.seed, steps })
    if (played.violation === undefined) passingSteps = steps
    else found = played
  }
  return found
}
