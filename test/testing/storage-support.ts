import { memory } from '../../adapters/storage/memory/index.ts'
import {
  type FaultyStorage,
  type FaultyStorageOptions,
  faultyStorage,
  type VirtualClock,
  virtualClock,
} from '../../adapters/testing/index.ts'
import type { CatalogChange, StorageSession } from '../../src/storage/contract.ts'
import { StorageConflict, StorageFailure } from '../../src/storage/errors.ts'

export interface OpenFaulty {
  readonly storage: FaultyStorage
  readonly session: StorageSession
  readonly clock: VirtualClock
  /** The logs that the session was notified of. */
  readonly notified: string[]
}

/** An open faulty storage with the document `a` and the log `log`. */
export async function openFaulty(options: FaultyStorageOptions = {}): Promise<OpenFaulty> {
  const storage = faultyStorage(memory(), options)
  const clock = virtualClock()
  const notified: string[] = []
  const session = await storage.open({ clock, onLogChanged: (logId) => notified.push(logId) })
  await session.commit([put('a'), { kind: 'create-log', logId: 'log', epoch: 1, createdAt: 0 }])
  return { storage, session, clock, notified }
}

export function put(key: string): CatalogChange {
  return { kind: 'put', collection: 'streams', key, value: 1 }
}

/** `done`, `conflict`, or the kind of the failure. */
export async function outcome(call: Promise<unknown>): Promise<string> {
  try {
    await call
    return 'done'
  } catch (error) {
    if (StorageConflict.is(error)) return 'conflict'
    if (StorageFailure.is(error)) return error.kind
    throw error
  }
}
