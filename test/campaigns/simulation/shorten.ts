import { type RunOptions, type RunResult, run } from './simulation.ts'

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
