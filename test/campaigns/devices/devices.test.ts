// @module-tag slow

import { beforeAll, describe, expect, it } from 'vitest'
import { loadModules } from '../harness/all-modules.ts'
import { reportOf } from '../harness/seeds.ts'
import { BROKEN_SYNC } from './broken-sync.ts'
import { DEVICES, play } from './simulation.ts'

const STEPS = 30

beforeAll(loadModules)

it.each([...DEVICES.regressions, 41, 42])('devices keep every promise in seed %d', async (seed) => {
  const played = await play({ seed, steps: DEVICES.steps })
  if (played.violation !== undefined) expect.fail(reportOf(DEVICES.name, played))
})

it('a seed has the same history again', async () => {
  const first = await play({ seed: 9, steps: STEPS })
  expect(await play({ seed: 9, steps: STEPS })).toEqual(first)
  expect(first.lines.length).toBeGreaterThan(STEPS)
})

describe('a seed finds', () => {
  it.each(BROKEN_SYNC)('%s', async (_, seed, sabotage) => {
    const played = await play({ seed, steps: STEPS }, sabotage())
    expect(played.violation).toBeDefined()
    expect(reportOf(DEVICES.name, played)).toContain(
      `npm run devices -- --seed ${seed} --steps ${played.steps}`,
    )
  })
})
