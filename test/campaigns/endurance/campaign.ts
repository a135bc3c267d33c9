import { expect, it } from 'vitest'
import { bundleProgram } from '../../support/child-process.ts'
import { campaignOf } from '../harness/campaign.ts'
import { runChild } from '../harness/run-child.ts'
import type { ScenarioParameters } from './harness/play.ts'
import { problemsOf, type Report } from './harness/report.ts'
import type { Scale, Scenario } from './harness/scenario.ts'
import type { StorageKind } from './harness/world.ts'
import { SCENARIOS } from './scenarios/index.ts'

const { runsAll, options } = campaignOf('endurance', { percent: 0 })
const SILENCE_MS_MAX = 600_000

/** Runs every scenario on a storage, at a smaller scale in `npm run test:full`. */
export function defineScenarios(storage: StorageKind): void {
  const program = bundleProgram(new URL('./child.ts', import.meta.url))
  const scenarios = SCENARIOS.filter(
    ({ isOfAnyStorage }) => runsAll || storage === 'memory' || !isOfAnyStorage,
  )
  it.each(scenarios)('$name', { timeout: Number.POSITIVE_INFINITY }, async ({ name, scales }) => {
    const scale = runsAll ? partOf(scales, options.percent) : scales.test
    const report = await runScenarios(await program, { scenario: name, storage, scale })
    if (runsAll) console.log(name, storage, scale, report)
    expect(problemsOf(report)).toEqual([])
  })
}

/** A part of the campaign, no smaller than in `npm run test:full`. */
function partOf({ test, campaign }: Scenario['scales'], percent: number): Scale {
  const part = (kind: keyof Scale) => Math.max(test[kind], Math.ceil((campaign[kind] * percent) / 100))
  return { rounds: part('rounds'), many: part('many') }
}

/** Runs a scenario in a process of its own, where nothing else is open or collected. */
export async function runScenarios(program: string, parameters: ScenarioParameters): Promise<Report> {
  const lines: string[] = []
  const ending = await runChild(program, {
    // Without threads for collection and compilation, which would make the memory in use random.
    nodeOptions: ['--expose-gc', '--single-threaded'],
    parameters,
    silenceMs: SILENCE_MS_MAX,
    onLine: (line) => lines.push(line),
  })
  if (ending.kind === 'failed') throw new Error(ending.problem)
  return JSON.parse(lines.join('\n'))
}
