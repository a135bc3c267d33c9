// @module-tag nightly

import { expect, it } from 'vitest'
import { runProgram } from './run-program.ts'

const STEPS = 60
const SEEDS = [1, 2, 3, 4, 5, 6]
const LAST_STEP = 'everything works again'

it('seeds have the same histories in a process of their own and behind others', {
  timeout: 300_000,
}, async () => {
  const together = await runProgram({ seed: SEEDS[0]!, seeds: SEEDS.length, steps: STEPS })
  const alone = []
  for (const seed of SEEDS) alone.push(await runProgram({ seed, steps: STEPS }))
  expect(together.length).toBeGreaterThan(SEEDS.length * STEPS)
  expect(alone.flat()).toEqual(together)
})

it('different seeds have different histories', { timeout: 120_000 }, async () => {
  const histories = new Set<string>()
  for (const seed of SEEDS) histories.add((await runProgram({ seed, steps: 10 })).join('\n'))
  expect(histories.size).toBe(SEEDS.length)
})

it('the steps of a run with fewer steps are a prefix of a longer run', { timeout: 120_000 }, async () => {
  const few = await runProgram({ seed: 9, steps: 20 })
  const more = await runProgram({ seed: 9, steps: 40 })
  const steps = few.slice(
    0,
    few.findIndex((line) => line.endsWith(LAST_STEP)),
  )
  expect(steps.length).toBeGreaterThan(20)
  expect(more.slice(0, steps.length)).toEqual(steps)
})
