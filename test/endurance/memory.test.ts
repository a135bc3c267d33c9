import { afterAll, beforeAll, it } from 'vitest'
import { type Program, programOf } from '../fuzz/harness/program.ts'
import { endure } from './campaign.ts'
import { SCENARIOS } from './scenarios/index.ts'

let program: Program
beforeAll(async () => {
  program = await programOf(new URL('child.ts', import.meta.url))
})
afterAll(() => program.remove())

it.each(SCENARIOS)('$name, in memory', { timeout: Number.POSITIVE_INFINITY }, async (scenario) => {
  await endure(program, scenario, 'memory')
})
