import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { filesystem } from '../../../adapters/storage/filesystem/index.ts'
import { memory } from '../../../adapters/storage/memory/index.ts'
import { Prng } from '../../../src/runtime/prng.ts'
import { campaign, workloadOf } from './campaign.ts'
import { openEngines } from './engine-target.ts'
import type { Outcome } from './operations.ts'
import { recordTarget } from './record-history.ts'
import type { OpenTarget } from './stream-client.ts'
import { type AppendFault, unsteady } from './unsteady-storage.ts'

const FAULTS: Readonly<Record<AppendFault, number>> = {
  'not written': 0.01,
  written: 0.02,
  'written later': 0.01,
  'never written': 0.01,
}

async function openDirectory(): Promise<OpenTarget> {
  const path = await mkdtemp(join(tmpdir(), 'headwater-linearizability-'))
  const target = await openEngines(filesystem(path), 1)
  return {
    ...target,
    async close() {
      await target.close()
      await rm(path, { recursive: true })
    },
  }
}

function openUnsteady(seed: number, engines: number, faults?: Readonly<Record<AppendFault, number>>) {
  const options = { prng: new Prng(seed), turnsMax: 3, ...(faults && { faults }) }
  return openEngines(unsteady(memory(), options), engines)
}

const ALWAYS = ['appended', 'refused', 'read', 'tail'] as const
/**
 * If appends take time, later ones of a session are in flight, and have no effect if an earlier one is
 * rejected.
 */
const WHEN_LATE = [...ALWAYS, 'not-made'] as const
const WHEN_FAILING = [...WHEN_LATE, 'unknown'] as const

const TARGETS: readonly [string, readonly Outcome['kind'][], (seed: number) => Promise<OpenTarget>][] = [
  ['memory', ALWAYS, () => openEngines(memory(), 1)],
  ['filesystem', WHEN_LATE, openDirectory],
  ['memory that answers late and fails', WHEN_FAILING, (seed) => openUnsteady(seed, 1, FAULTS)],
  ['two engines on one memory', ALWAYS, () => openEngines(memory(), 2)],
  ['two engines on one memory that answers late', WHEN_LATE, (seed) => openUnsteady(seed, 2)],
  [
    'two engines on one memory that answers late and fails',
    WHEN_FAILING,
    (seed) => openUnsteady(seed, 2, FAULTS),
  ],
]

for (const [name, outcomes, openTarget] of TARGETS) {
  campaign(name, outcomes, async (seed) => recordTarget(await openTarget(seed), workloadOf(seed)))
}
