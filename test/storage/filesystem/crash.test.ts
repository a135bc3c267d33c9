import { setImmediate } from 'node:timers/promises'
import { describe, expect, test, vi } from 'vitest'
import { Prng } from '../../../src/storage/conformance/prng.ts'
import type { StorageSession } from '../../../src/storage/contract.ts'
import { checkGoesOn, checkRecovered } from './check-recovered.ts'
import { Coverage } from './coverage.ts'
import { KilledProcess, type Loss, SimulatedDisk } from './simulated-disk.ts'
import { type History, openSimulated, runWorkload } from './workload.ts'

/** Set `CRASH_SEEDS` to a number of workloads, or to one seed as `=7`, to look for more or to repeat a failure. */
const SEEDS = seedsOf(process.env.CRASH_SEEDS ?? '3')
/** Thousands of openings, on a machine that may be busy. */
vi.setConfig({ testTimeout: 180_000 })

const LOSSES: readonly Loss[] = ['nothing', 'everything', 'some', 'some', 'reordered']
const OPENING_OPERATIONS = 12
const POINTS_MIN_OF_A_SEED = 2_000
const coverage = new Coverage()

describe.each(SEEDS)('after a crash at any point of workload %i', (seed) => {
  const rollBytes = [700, 2000, 6000][seed % 3]!

  test('everything acknowledged is there, and nothing else', async () => {
    const prng = new Prng(seed)
    const disk = new SimulatedDisk(prng)
    const history = await runWorkload(disk, prng, rollBytes)
    expect(disk.links, 'adopted journals').toBeGreaterThan(0)
    for (let count = 0; count <= disk.length; count++) {
      for (const [index, loss] of LOSSES.entries()) {
        const lossSeed = seed * 1_000_003 + count * 17 + index
        const what = `seed ${seed}, after operation ${count}, losing ${loss} (${index})`
        await expectSound(disk.crashedAfter(count, loss, new Prng(lossSeed)), history, count, what)
      }
    }
  })

  test('also when the recovery crashes, and the one after it', async () => {
    const prng = new Prng(seed + 500_000)
    const disk = new SimulatedDisk(prng)
    const history = await runWorkload(disk, prng, rollBytes)
    for (let round = 0; round < 40; round++) {
      const count = prng.below(disk.length + 1)
      let crashed = disk.crashedAfter(count, prng.pick(LOSSES), prng)
      for (let again = 0; again < 3; again++) {
        const session = await recovered(crashed, rollBytes)
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
      for (const loss of ['everything', 'some', 'reordered'] as const) {
        const crashed = disk.crashedAfter(count, loss, new Prng(seed * 1_000_003 + count))
        const session = await recovered(crashed, rollBytes).catch((error: Error) => {
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
    // What an opening does first rests on what it found.
    const step = (operations: number): number => (operations < OPENING_OPERATIONS ? 1 : 1 + prng.below(10))
    for (let kill = 0; kill < 20; kill++) {
      const rollBytes = prng.pick([700, 6000, 50_000])
      const disk = new SimulatedDisk(prng)
      const history: History = { logs: [], puts: [], reclaims: [] }
      const killed = new KilledProcess(disk, 1 + prng.below(100), prng.chance(0.5))
      const durability = prng.pick(['sync', 'os'] as const)
      const workload = runWorkload(disk, prng, rollBytes, history, killed, durability)
      await Promise.race([workload, killed.end])
      // What was done before the kill is told by then.
      await setImmediate()
      // With `os` it relied on the system alone, until the next opening.
      if (durability === 'os') acknowledgeNothing(history)
      const opened = disk.length
      await runWorkload(disk, prng, rollBytes, history)
      for (let count = opened; count <= disk.length; count += step(count - opened)) {
        const loss = prng.pick(['everything', 'some', 'reordered'] as const)
        const what = `seed ${seed}, kill ${kill} at ${opened}, after operation ${count}, losing ${loss}`
        const crashed = disk.crashedAfter(count, loss, new Prng(seed * 1_000_003 + count))
        await expectSound(crashed, history, count, what)
      }
    }
  })
})

test(`they were more than ${POINTS_MIN_OF_A_SEED * SEEDS.length} crashes, and took and left something of every kind`, () => {
  expect(coverage.points).toBeGreaterThan(POINTS_MIN_OF_A_SEED * SEEDS.length)
  expect([...coverage.replayed].sort()).toEqual([
    'append',
    'commit of several changes',
    'create-log',
    'delete',
    'delete-log',
    'fence',
    'free',
    'merge',
    'put',
    'set-epoch',
    'trim',
  ])
  expect([...coverage.files].sort()).toEqual([
    'checkpoint',
    'checkpoint.tmp',
    'journal',
    'journal.tmp',
    'segment',
    'segment.tmp',
  ])
  expect([...coverage.taken].sort()).toEqual([
    'name',
    'name before one that stayed',
    'part of a write',
    'write',
    'write before one that stayed',
  ])
})

function recovered(disk: SimulatedDisk, rollBytes: number): Promise<StorageSession> {
  return coverage.recovering(disk, () => openSimulated(disk, rollBytes))
}

async function expectSound(
  disk: SimulatedDisk,
  history: Parameters<typeof checkRecovered>[1],
  count: number,
  what: string,
): Promise<void> {
  try {
    const session = await recovered(disk, 700)
    await checkRecovered(session, history, count)
    await checkGoesOn(session, history)
    await session.close()
  } catch (error) {
    throw new Error(`${what}: ${(error as Error).message}`, { cause: error })
  }
}

function acknowledgeNothing({ logs, puts }: History): void {
  const attempts = logs.flatMap(({ appends, deletion }) => [...appends, ...(deletion ? [deletion] : [])])
  for (const attempt of [...attempts, ...puts]) {
    if (attempt.outcome === 'done') attempt.outcome = 'unknown'
  }
}

function seedsOf(text: string): number[] {
  if (text.startsWith('=')) return [Number(text.slice(1))]
  return Array.from({ length: Number(text) }, (_, i) => i + 1)
}
