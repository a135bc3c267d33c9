// @module-tag nightly

import { setImmediate } from 'node:timers/promises'
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest'
import { Prng } from '../../../src/runtime/prng.ts'
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
import { Coverage } from './coverage.ts'

const crash = campaignOf('crash', { workloads: 1, workload: undefined as number | undefined })
const { workloads, workload } = crash.options
const SEEDS = workload === undefined ? seedsFrom(1, workloads) : [workload]
vi.setConfig({ testTimeout: 180_000 })

const LOSSES: readonly Loss[] = ['nothing', 'everything', 'some', 'some', 'reordered']
const OPENING_OPERATIONS = 12
const POINTS_MIN_OF_A_SEED = 2_000
const TESTS_OF_A_SEED = 4
const coverage = new Coverage()
const progress = new Progress(crash, 'tests', SEEDS.length * TESTS_OF_A_SEED)
afterEach(({ task }) => {
  if (task.result?.state === 'fail') progress.fail()
  else progress.pass()
})
afterAll(() => progress.close(`${coverage.points} crashes`))

describe.each(SEEDS)('a crash at any point of workload %i', (seed) => {
  const rollBytes = [700, 2000, 6000][seed % 3]!

  test('keeps everything that was acknowledged, and nothing else', async () => {
    const prng = new Prng(seed)
    const disk = new SimulatedDisk(prng)
    const history = await runWorkload(disk, prng, rollBytes)
    expect(disk.links, 'adopted journals').toBeGreaterThan(0)
    for (let count = 0; count <= disk.length; count++) {
      for (const [index, loss] of LOSSES.entries()) {
        const lossSeed = seed * 1_000_003 + count * 17 + index
        const description = describeRun(seed, `after operation ${count}, losing ${loss} (${index})`)
        await expectRecovered(disk.crashedAfter(count, loss, new Prng(lossSeed)), history, count, description)
      }
    }
  })

  test('keeps it if the recovery crashes as well, several times', async () => {
    const prng = new Prng(seed + 500_000)
    const disk = new SimulatedDisk(prng)
    const history = await runWorkload(disk, prng, rollBytes)
    for (let round = 0; round < 40; round++) {
      const count = prng.below(disk.length + 1)
      let crashed = disk.crashedAfter(count, prng.pick(LOSSES), prng)
      for (let recovery = 0; recovery < 3; recovery++) {
        const session = await recovered(crashed, rollBytes)
        await checkRecovered(session, history, count)
        crashed = crashed.crashedAfter(prng.below(crashed.length + 1), prng.pick(LOSSES), prng)
        await session.close()
      }
      await expectRecovered(crashed, history, count, describeRun(seed, `round ${round}`))
    }
  })
})

describe.each(SEEDS)('with durability `process-crash` (workload %i)', (seed) => {
  test('loses nothing in a crash of the process, and keeps a prefix of each log in a crash of the machine', async () => {
    const rollBytes = [700, 2000, 6000][seed % 3]!
    const prng = new Prng(seed + 700_000)
    const disk = new SimulatedDisk(prng)
    const history = await runWorkload(disk, prng, rollBytes, undefined, disk, 'process-crash')
    expect(disk.links, 'adopted journals').toBeGreaterThan(0)
    for (let count = 0; count <= disk.length; count++) {
      const description = describeRun(seed, `after operation ${count}`)
      await expectRecovered(disk.crashedAfter(count, 'nothing', prng), history, count, description)
      for (const loss of ['everything', 'some', 'reordered'] as const) {
        const crashed = disk.crashedAfter(count, loss, new Prng(seed * 1_000_003 + count))
        await expectPrefixes(crashed, rollBytes, history, count, `${description}, losing ${loss}`)
      }
    }
  })
})

describe.each(SEEDS)('a state read after a kill (workload %i)', (seed) => {
  test('survives a crash of the machine, even if it was never acknowledged', async () => {
    const prng = new Prng(seed + 900_000)
    // The first operations of an opening depend on what it found.
    const step = (operations: number): number => (operations < OPENING_OPERATIONS ? 1 : 1 + prng.below(10))
    for (let kill = 0; kill < 20; kill++) {
      const rollBytes = prng.pick([700, 6000, 50_000])
      const disk = new SimulatedDisk(prng)
      const history: History = { logs: [], puts: [], reclaims: [] }
      const killed = new KilledProcess(disk, 1 + prng.below(100), prng.chance(0.5))
      const durability = prng.pick(['power-loss', 'process-crash'] as const)
      const workload = runWorkload(disk, prng, rollBytes, history, killed, durability)
      await Promise.race([workload, killed.end])
      // Acknowledgements from before the kill arrive.
      await setImmediate()
      // With it, nothing is synced until the next opening.
      if (durability === 'process-crash') forgetAcknowledgements(history)
      const opened = disk.length
      await runWorkload(disk, prng, rollBytes, history)
      for (let count = opened; count <= disk.length; count += step(count - opened)) {
        const loss = prng.pick(['everything', 'some', 'reordered'] as const)
        const description = describeRun(
          seed,
          `kill ${kill} at ${opened}, after operation ${count}, losing ${loss}`,
        )
        const crashed = disk.crashedAfter(count, loss, new Prng(seed * 1_000_003 + count))
        await expectRecovered(crashed, history, count, description)
      }
    }
  })
})

test(`more than ${POINTS_MIN_OF_A_SEED * SEEDS.length} crashes lose and keep changes, files and writes of every kind`, () => {
  expect(coverage.points).toBeGreaterThan(POINTS_MIN_OF_A_SEED * SEEDS.length)
  expect([...coverage.replayed].sort()).toEqual([
    'append',
    'commit of several changes',
    'compact',
    'create-log',
    'delete',
    'delete-log',
    'fence',
    'free',
    'put',
    'set-epoch',
    'trim',
  ])
  expect([...coverage.files].sort()).toEqual([
    'checkpoint',
    'checkpoint.tmp',
    'journal',
    'journal.tmp',
    'reserve',
    'segment',
    'segment.tmp',
  ])
  expect([...coverage.losses].sort()).toEqual([
    'name',
    'name before a kept one',
    'part of a write',
    'write',
    'write before a kept one',
  ])
})

function recovered(disk: SimulatedDisk, rollBytes: number): Promise<StorageSession> {
  return coverage.recovering(disk, () => openSimulated(disk, rollBytes))
}

async function expectRecovered(
  disk: SimulatedDisk,
  history: Parameters<typeof checkRecovered>[1],
  count: number,
  description: string,
): Promise<void> {
  try {
    const session = await recovered(disk, 700)
    await checkRecovered(session, history, count)
    await checkAcceptsAppends(session, history)
    await session.close()
  } catch (error) {
    throw new Error(`${description}: ${(error as Error).message}`, { cause: error })
  }
}

async function expectPrefixes(
  disk: SimulatedDisk,
  rollBytes: number,
  history: History,
  count: number,
  description: string,
): Promise<void> {
  try {
    const session = await recovered(disk, rollBytes)
    await checkPrefixes(session, history, count)
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
