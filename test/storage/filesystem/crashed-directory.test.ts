// @module-tag slow

import { describe, expect, test } from 'vitest'
import { Prng } from '../../../src/runtime/random.ts'
import { type Loss, SimulatedDisk } from './simulated-disk.ts'
import { verifyDisk } from './verify-disk.ts'
import { openSimulated, runWorkload } from './workload.ts'

const CRASHES = 4

/** Rolls, compactions, reclaims, deletions: an opening accepts what a crash leaves at any point. */
describe.each([
  ['power-loss', 1],
  ['process-crash', 3],
] as const)('with durability %s, of seed %i,', (durability, seed) => {
  test('every crash leaves a sound directory, and verifying changes nothing', async () => {
    const prng = new Prng(seed)
    const disk = new SimulatedDisk(prng)
    await runWorkload(disk, prng, 1500, undefined, disk, durability)
    expect(await problemsOf(disk)).toEqual([])
    for (let i = 0; i < CRASHES; i++) {
      const loss = prng.pick<Loss>(['nothing', 'everything', 'some'])
      const crashed = disk.crashedAfter(prng.below(disk.length), loss, prng)
      const before = contentsOf(crashed)
      expect(await problemsOf(crashed), `${loss} lost`).toEqual([])
      expect(crashed.length).toBe(0)
      expect(contentsOf(crashed)).toEqual(before)
      const session = await openSimulated(crashed, 1500, durability)
      await session.close()
      expect(await problemsOf(crashed), 'opened again').toEqual([])
    }
  })
})

async function problemsOf(disk: SimulatedDisk) {
  return (await verifyDisk(disk)).problems
}

function contentsOf(disk: SimulatedDisk): Record<string, string> {
  return Object.fromEntries(disk.names.map((name) => [name, disk.contentOf(name).toString('hex')]))
}
