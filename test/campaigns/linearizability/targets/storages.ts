import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { filesystem } from '../../../../adapters/storage/filesystem/index.ts'
import { memory } from '../../../../adapters/storage/memory/index.ts'
import { faultyStorage } from '../../../../adapters/testing/index.ts'
import { type StorageRates, storageFaultsAtRandom } from '../../../support/random-faults.ts'
import type { Target } from '../record-history.ts'
import { openEngines } from './engines.ts'

const delay = [0, 3] as const
const RATES: StorageRates = {
  append: { before: 0.02, after: 0.03, delay },
  commit: { delay },
  head: { delay },
  list: { delay },
  read: { delay },
}

export async function openDirectory(): Promise<Target> {
  const path = await mkdtemp(join(tmpdir(), 'headwater-linearizability-'))
  return openEngines(filesystem(path), 1, () => rm(path, { recursive: true }))
}

/** Appends may fail, without effects or with them, and every call takes a while. */
export function openFailingMemory(seed: number, engines: number): Promise<Target> {
  const storage = faultyStorage(memory(), { notifications: 'reliable' })
  storageFaultsAtRandom(storage, seed, RATES)
  return openEngines(storage, engines)
}
