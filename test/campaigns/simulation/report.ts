import { replayCommand } from '../harness/campaign.ts'
import { type RunOptions, type RunResult, run } from './simulation.ts'

const LINES_SHOWN = 40

/** The broken promise, the events before it, and the command that replays it. */
export function report({ seed, steps, isAtEnd, violation, settings, lines }: RunResult): string {
  const { expected, found } = violation!
  const when = isAtEnd ? `after step ${steps}, at the end` : `at step ${steps}`
  return [
    `Seed ${seed}, ${when}:`,
    `expected: ${expected}`,
    `found:    ${found}`,
    '',
    `The seed's settings: ${JSON.stringify(settings)}`,
    `The last of ${lines.length} lines of its history:`,
    ...lines.slice(-LINES_SHOWN).map((line) => `  ${line}`),
    '',
    `Replay: ${replayOf(seed, steps)}`,
    `The whole history: ${replayOf(seed, steps)} --history`,
  ].join('\n')
}

export function replayOf(seed: number, steps: number): string {
  return replayCommand('sim', { seed, steps })
}

/**
 * The same violation with fewer steps, found by halving. A violation found by a step needs all steps before
 * it. One found at the end may need fewer, because the steps of a seed do not depend on their number.
 */
export async function shorten(options: RunOptions, failed: RunResult): Promise<RunResult> {
  if (!failed.isAtEnd) return failed
  let shortest = failed
  let failingSteps = 0
  while (shortest.steps - failingSteps > 1) {
    const steps = Math.floor((failingSteps + shortest.steps) / 2)
    const result = await run({ ...options, steps })
    if (result.violation === undefined) failingSteps = steps
    else shortest = result
    if (!shortest.isAtEnd) break
  }
  return shortest
}
