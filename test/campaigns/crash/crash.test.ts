// @module-tag nightly

import { setImmediate } from 'node:timers/promises'
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest'
import { Prng } from '../../../src/runtime/random.ts'
import type { StorageSession } from '../../../src/storage/contract.ts'
import {
  checkAcceptsAppends,
  checkPrefixes,
  checkRecovered,
} from '../../storage/filesystem/check-recovered.ts'
import { KilledProcess, type Loss, SimulatedDisk } from '../../storage/filesystem/simulated-disk.ts'
import { type History, openSimulated, runWorkload } from '../../storage/filesystem/workload.ts'
import { campaignOf, replayCommand, seedsFrom } from '../harness/campaign.ts'
import { Progress } from '../harness/progress.ts'

const crash = campaignOf('crash', { workloads: 1, workload: undefined as number | undefined, seed: 1 })
const { workloads, workload, seed: firstSeed } = crash.options
const SEEDS = workload === undefined ? seedsFrom(firstSeed, workloads) : [workload]
vi.setConfig({ testTimeout: 600_000 })

/** The losses after each operation: those of one row. */
const LOSSES: readonly (readonly Loss[])[] = [
  ['nothing', 'some'],
  ['everything', 'some'],
  ['reordered', 'some'],
]
const OPENING_OPERATIONS = 12
/** Fewer operations would be a workload that does not write. */
const OPERATIONS_MIN = 100
const TESTS_OF_A_SEED = 4
const progress = new Progress(crash, 'tests', SEEDS.length * TESTS_OF_A_SEED)
let crashes = 0
afterEach(({ task }) => {
  if (task.result?.state === 'fail') progress.fail()
  else progress.pass()
})
afterAll(() => progress.close(`${crashes} crashes`))

describe.each(SEEDS)('a crash at any point of workload %i', (seed) => {
  const rollBytes = rollBytesOf(seed)

  test('keeps everything that was acknowledged, and nothing else', async () => {
    const prng = new Prng(seed)
    const disk = new SimulatedDisk(prng)
    const history = await runWorkload(disk, prng, rollBytes)
    expect(disk.length).toBeGreaterThan(OPERATIONS_MIN)
    for (let count = 0; count <= disk.length; count++) {
      for (const [index, loss] of LOSSES[(count + seed) % LOSSES.length]!.entries()) {
        const crashed = disk.crashedAfter(count, loss, new Prng(seed * 1_000_003 + count * 17 + index))
        const point = `after operation ${count}, losing ${loss}`
        await expectRecovered(crashed, history, count, describeRun(seed, point))
      }
    }
  })

  test('keeps it if the recovery crashes as well, several times', async () => {
    const prng = new Prng(seed + 500_000)
    const disk = new SimulatedDisk(prng)
    const history = await runWorkload(disk, prng, rollBytes)
    const anyLoss = () => prng.pick(LOSSES.flat())
    for (let round = 0; round < 40; round++) {
      const count = prng.below(disk.length + 1)
      let crashed = disk.crashedAfter(count, anyLoss(), prng)
      for (let recovery = 0; recovery < 3; recovery++) {
        const session = await openSimulated(crashed, rollBytes)
        await checkRecovered(session, history, count)
        crashed = crashed.crashedAfter(prng.below(crashed.length + 1), anyLoss(), prng)
        await session.close()
      }
      await expectRecovered(crashed, history, count, describeRun(seed, `round ${round}`))
    }
  })
})

describe.each(SEEDS)('with durability `process-crash` (workload %i)', (seed) => {
  test('loses nothing if the process crashes, and keeps a prefix of each log if the machine does', async () => {
    const prng = new Prng(seed + 700_000)
    const disk = new SimulatedDisk(prng)
    const history = await runWorkload(disk, prng, rollBytesOf(seed), undefined, disk, 'process-crash')
    expect(disk.length).toBeGreaterThan(OPERATIONS_MIN)
    for (let count = 0; count <= disk.length; count++) {
      for (const loss of LOSSES[(count + seed) % LOSSES.length]!) {
        const crashed = disk.crashedAfter(count, loss, new Prng(seed * 1_000_003 + count))
        const description = describeRun(seed, `after operation ${count}, losing ${loss}`)
        if (loss === 'nothing') await expectRecovered(crashed, history, count, description)
        else await expectRecovered(crashed, history, count, description, checkPrefixes)
      }
    }
  })
})

describe.each(SEEDS)('a state read after a kill (workload %i)', (seed) => {
  test('survives a crash of the machine, even if it was never acknowledged', async () => {
    const prng = new Prng(seed + 900_000)
    // The first operations of an opening depend on what it found.
    const step = (operations: number): number => (operations < OPENING_OPERATIONS ? 1 : 1 + prng.below(20))
    for (let kill = 0; kill < 12; kill++) {
      const rollBytes = prng.pick([700, 6000, 50_000])
      const disk = new SimulatedDisk(prng)
      const history: History = { logs: [], puts: [], reclaims: [] }
      const killed = new KilledProcess(disk, 1 + prng.below(100), prng.chance(0.5))
      const durability = prng.pick(['power-loss', 'process-crash'] as const)
      const working = runWorkload(disk, prng, rollBytes, history, killed, durability)
      await Promise.race([working, killed.end])
      // Acknowledgements from before the kill arrive.
      await setImmediate()
      // With it, nothing is synced until the next opening.
      if (durability === 'process-crash') forgetAcknowledgements(history)
      const opened = disk.length
      await runWorkload(disk, prng, rollBytes, history)
      for (let count = opened; count <= disk.length; count += step(count - opened)) {
        const loss = prng.pick(['everything', 'some', 'reordered'] as const)
        const crashed = disk.crashedAfter(count, loss, new Prng(seed * 1_000_003 + count))
        const point = `kill ${kill} at ${opened}, after operation ${count}, losing ${loss}`
        await expectRecovered(crashed, history, count, describeRun(seed, point))
      }
    }
  })
})

function rollBytesOf(seed: number): number {
  return [700, 2000, 6000][seed % 3]!
}

/** The disk opens, has what the check demands, and accepts new appends. */
async function expectRecovered(
  disk: SimulatedDisk,
  history: History,
  count: number,
  description: string,
  check: (session: StorageSession, history: History, count: number) => Promise<void> = checkRecovered,
): Promise<void> {
  crashes++
  try {
    const session = await openSimulated(disk, 700)
    await check(session, history, count)
    await checkAcceptsAppends(session, history)
    await session.close()
  } catch (error) {
    throw new Error(`${description}: ${(error as Error).message}`, { cause: error })
  }
}

function describeRun(workload: number, point: string): string {
  return `workload ${workload}, ${point} (replay: ${replayCommand('crash', { workload })})`
}

function forgetAcknowledgements({ logs, puts }: History): void {
  const attempts = logs.flatMap(({ appends, deletion }) => [...appends, ...(deletion ? [deletion] : [])])
  for (const attempt of [...attempts, ...puts]) {
    if (attempt.outcome === 'done') attempt.outcome = 'unknown'
  }
}
