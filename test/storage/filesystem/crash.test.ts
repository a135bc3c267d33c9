import { describe, expect, test } from 'vitest'
import { Prng } from '../../../src/storage/conformance/prng.ts'
import { checkGoesOn, checkRecovered } from './check-recovered.ts'
import { KilledProcess, type Loss, SimulatedDisk } from './simulated-disk.ts'
import { type History, openSimulated, runWorkload } from './workload.ts'

/** Set `CRASH_SEEDS` to a number of workloads, or to one seed as `=7`, to look for more or to repeat a failure. */
const SEEDS = seedsOf(process.env.CRASH_SEEDS ?? '4')
const LOSSES: readonly Loss[] = ['nothing', 'everything', 'some', 'some']

describe.each(SEEDS)('after a crash at any point of workload %i', (seed) => {
  const rollBytes = [700, 2000, 6000][seed % 3]!

  test('everything acknowledged is there, and nothing else', async () => {
    const prng = new Prng(seed)
    const disk = new SimulatedDisk(prng)
    const history = await runWorkload(disk, prng, rollBytes)
    expect(disk.links, 'adopted journals').toBeGreaterThan(0)
    let points = 0
    for (let count = 0; count <= disk.length; count++) {
      for (const [index, loss] of LOSSES.entries()) {
        const lossSeed = seed * 1_000_003 + count * 17 + index
        const what = `seed ${seed}, after operation ${count}, losing ${loss} (${index})`
        await expectSound(disk.crashedAfter(count, loss, new Prng(lossSeed)), history, count, what)
        points++
      }
    }
    expect(points).toBeGreaterThan(400)
  })

  test('also when the recovery crashes, and the one after it', async () => {
    const prng = new Prng(seed + 500_000)
    const disk = new SimulatedDisk(prng)
    const history = await runWorkload(disk, prng, rollBytes)
    for (let round = 0; round < 40; round++) {
      const count = prng.below(disk.length + 1)
      let crashed = disk.crashedAfter(count, prng.pick(LOSSES), prng)
      for (let again = 0; again < 3; again++) {
        const session = await openSimulated(crashed, rollBytes)
        await checkRecovered(session, history, count)
        crashed = crashed.crashedAfter(prng.below(crashed.length + 1), prng.pick(LOSSES), prng)
        await session.close()
      }
      await expectSound(crashed, history, count, `seed ${seed}, round ${round}`)
    }
  })
})

describe.each(SEEDS)('with durability os (workload %i)', (seed) => {
  test('a crash of the process loses nothing, and one of the machine leaves what can be opened', async () => {
    const rollBytes = [700, 2000, 6000][seed % 3]!
    const prng = new Prng(seed + 700_000)
    const disk = new SimulatedDisk(prng)
    const history = await runWorkload(disk, prng, rollBytes, undefined, disk, 'os')
    expect(disk.links, 'adopted journals').toBeGreaterThan(0)
    for (let count = 0; count <= disk.length; count++) {
      const what = `seed ${seed}, after operation ${count}`
      await expectSound(disk.crashedAfter(count, 'nothing', prng), history, count, what)
      for (const loss of ['everything', 'some'] as const) {
        const crashed = disk.crashedAfter(count, loss, new Prng(seed * 1_000_003 + count))
        const session = await openSimulated(crashed, rollBytes).catch((error: Error) => {
          throw new Error(`${what}, losing ${loss}: ${error.message}`, { cause: error })
        })
        await checkGoesOn(session, history)
        await session.close()
      }
    }
  })
})

describe.each(SEEDS)('what a new process finds after a kill (workload %i)', (seed) => {
  test('stays, though it was never acknowledged, and whatever the system had only in memory', async () => {
    const prng = new Prng(seed + 900_000)
    for (let kill = 0; kill < 10; kill++) {
      const rollBytes = prng.pick([700, 6000, 50_000])
      const disk = new SimulatedDisk(prng)
      const history: History = { logs: [], puts: [], reclaims: [] }
      const killed = new KilledProcess(disk, 1 + prng.below(100))
      await Promise.race([runWorkload(disk, prng, rollBytes, history, killed), killed.end])
      const opened = disk.length
      await runWorkload(disk, prng, rollBytes, history)
      for (let count = opened; count <= disk.length; count += 1 + prng.below(10)) {
        const loss = prng.pick(['everything', 'some'] as const)
        const what = `seed ${seed}, kill ${kill} at ${opened}, after operation ${count}, losing ${loss}`
        const crashed = disk.crashedAfter(count, loss, new Prng(seed * 1_000_003 + count))
        await expectSound(crashed, history, count, what)
      }
    }
  })
})

async function expectSound(
  disk: SimulatedDisk,
  history: Parameters<typeof checkRecovered>[1],
  count: number,
  what: string,
): Promise<void> {
  try {
    const session = await openSimulated(disk, 700)
    await checkRecovered(session, history, count)
    await checkGoesOn(session, history)
    await session.close()
  } catch (error) {
    throw new Error(`${what}: ${(error as Error).message}`, { cause: error })
  }
}

function seedsOf(text: string): number[] {
  if (text.startsWith('=')) return [Number(text.slice(1))]
  return Array.from({ length: Number(text) }, (_, i) => i + 1)
}
