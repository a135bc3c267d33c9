import { afterAll, beforeAll, it } from 'vitest'
import { type Program, programOf } from '../fuzz/harness/program.ts'
import { endure, isCampaign } from './campaign.ts'
import { SCENARIOS } from './scenarios/index.ts'

let program: Program
beforeAll(async () => {
  program = await programOf(new URL('child.ts', import.meta.url))
})
afterAll(() => program.remove())

const scenarios = SCENARIOS.filter(({ isOfAnyStorage }) => isCampaign || !isOfAnyStorage)

it.each(scenarios)('$name, on the filesystem', { timeout: Number.POSITIVE_INFINITY }, async (scenario) => {
  await endure(program, scenario, 'filesystem')
})
