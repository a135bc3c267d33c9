import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { filesystem } from '../../../../adapters/storage/filesystem/index.ts'
import { memory } from '../../../../adapters/storage/memory/index.ts'
import { Prng } from '../../../../src/runtime/prng.ts'
import type { Target } from '../record-history.ts'
import { openEngines } from './engines.ts'
import { type AppendFault, unsteady } from './unsteady-storage.ts'

const FAULTS: Readonly<Record<AppendFault, number>> = {
  'not written': 0.01,
  written: 0.02,
  'written later': 0.01,
  'never written': 0.01,
}

export function openMemory(): Promise<Target> {
  return openEngines(memory(), 1)
}

export async function openDirectory(): Promise<Target> {
  const path = await mkdtemp(join(tmpdir(), 'headwater-linearizability-'))
  return openEngines(filesystem(path), 1, () => rm(path, { recursive: true }))
}

export function openFailingMemory(seed: number, engines: number): Promise<Target> {
  return openEngines(unsteady(memory(), { prng: new Prng(seed), turnsMax: 3, faults: FAULTS }), engines)
}
