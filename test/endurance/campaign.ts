import { expect } from 'vitest'
import type { Program } from '../fuzz/harness/program.ts'
import { problemsOf } from './harness/report.ts'
import { runChild } from './harness/run-child.ts'
import type { Scenario } from './harness/scenario.ts'
import type { StorageKind } from './harness/world.ts'

// The whole of it is `npm run endurance`, which sets this.
export const isCampaign = process.env.ENDURANCE === 'whole'

/** Plays a scenario, as much of it as there is time for. */
export async function endure(
  program: Program,
  { name, scales }: Pick<Scenario, 'name' | 'scales'>,
  storage: StorageKind,
): Promise<void> {
  const scale = isCampaign ? scales.campaign : scales.test
  const report = await runChild(program.path, { scenario: name, storage, scale })
  if (isCampaign) console.log(name, storage, scale, report)
  expect(problemsOf(report)).toEqual([])
}
