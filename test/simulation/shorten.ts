import { type RunOptions, type RunResult, run } from './simulation.ts'

/**
 * The same violation with fewer steps, as far as halving finds it. What is found by a step needs all steps before it; what is found at the end may come of fewer: the steps of
 * a seed are the same however many are made.
 */
export async function shorten(options: RunOptions, failed: RunResult): Promise<RunResult> {
  if (!failed.isAtEnd) return failed
  let shortest = failed
  let tooFew = 0
  while (shortest.steps - tooFew > 1) {
    const steps = Math.floor((tooFew + shortest.steps) / 2)
    const result = await run({ ...options, steps })
    if (result.violation === undefined) tooFew = steps
    else shortest = result
    if (!shortest.isAtEnd) break
  }
  return shortest
}
