import { StorageConflict, StorageFailure } from '../../../src/storage/errors.ts'
import type { Injection } from './storage-fault-plan.ts'
import type { StorageOperation } from './storage-faults.ts'

const WRITES: ReadonlySet<StorageOperation> = new Set(['commit', 'append', 'reclaim'])

export function injectedError(
  { operation, call }: Injection,
  { kind, after }: NonNullable<Injection['failure']>,
): StorageFailure | StorageConflict {
  const message = `injected: ${operation} ${call} ${after ? 'was made, its answer is lost' : 'was not made'}`
  if (kind === 'conflict') return new StorageConflict(message)
  return new StorageFailure(kind, message, { nothingWritten: !after || !WRITES.has(operation) })
}

/** Whoever made the call cannot know what came of it. */
export function lostAnswer(operation: StorageOperation): StorageFailure {
  const message = `injected: the connection was lost before the answer to ${operation}`
  return new StorageFailure('io', message, { nothingWritten: !WRITES.has(operation) })
}

/** Nothing can be asked. */
export function noConnection(): StorageFailure {
  return new StorageFailure('io', 'injected: no connection to the storage', { nothingWritten: true })
}
