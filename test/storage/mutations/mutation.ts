import { memory } from '../../../adapters/storage/memory/index.ts'
import type { Storage, StoredBlock } from '../../../src/storage/contract.ts'
import { type Change, wrapped } from '../wrapped-storage.ts'

/** A storage that violates one rule of the contract. */
export interface Mutation {
  readonly breaks: string
  /** Titles of the conformance tests that must fail. */
  readonly noticedBy: readonly string[]
  readonly make: () => Storage
}

export function mutate(change: Change): () => Storage {
  return () => wrapped(change)
}

export function mutateRead(change: (blocks: StoredBlock[]) => StoredBlock[]): () => Storage {
  return mutate((session) => ({
    read: async (logId, range) => change(await session.read(logId, range)),
  }))
}

export function mutateContext(
  change: (onLogChanged: (logId: string) => void) => (logId: string) => void,
): () => Storage {
  return () => {
    const inner = memory()
    return {
      manifest: inner.manifest,
      open: (context) => inner.open({ ...context, onLogChanged: change(context.onLogChanged) }),
    }
  }
}
