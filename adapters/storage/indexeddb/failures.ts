import { StorageConflict, StorageFailure, type StorageFailureKind } from '../../../src/storage/errors.ts'

/** By the name of a browser's error. */
const KINDS: Readonly<Record<string, StorageFailureKind>> = {
  QuotaExceededError: 'quota',
  // A value that is kept in a file of its own, and the file is gone or is not what it should be.
  DataError: 'corrupt',
  NotReadableError: 'corrupt',
  // An object store that the schema has and the database has not.
  NotFoundError: 'corrupt',
}

/** Of failures that another connection may not have. */
const LOST = ['InvalidStateError', 'AbortError', 'UnknownError', 'TransactionInactiveError']

/** What a call tells of what the browser threw. With `nothingWritten` when that is certain in any case. */
export function failureOf(error: unknown, nothingWritten: boolean): StorageFailure | StorageConflict {
  if (StorageFailure.is(error) || StorageConflict.is(error)) return error
  const name = nameOf(error)
  const kind = KINDS[name] ?? 'io'
  const reason = error instanceof Error ? error.message : String(error)
  if (kind === 'quota') return full(error)
  return new StorageFailure(kind, `IndexedDB failed: ${name}: ${reason}`, { nothingWritten, cause: error })
}

/** A transaction that finds no space is undone as a whole. */
export function full(cause?: unknown): StorageFailure {
  const message = 'there is no space left for this origin: trim streams, or delete them'
  return new StorageFailure('quota', message, { nothingWritten: true, cause })
}

/** The failure of a call whose first attempt may have been made, whatever keeps it from being made again. */
export function afterAttempt(failure: StorageFailure): StorageFailure {
  return new StorageFailure(failure.kind, failure.message, { nothingWritten: false, cause: failure.cause })
}

/** Whether the call may do better on a new connection: browsers drop connections, Safari without saying so. */
export function mayBeLost(error: unknown): boolean {
  return LOST.includes(nameOf(error))
}

export function corrupt(what: string, cause?: unknown): StorageFailure {
  return new StorageFailure('corrupt', `the database is damaged: ${what}`, { nothingWritten: true, cause })
}

export function closed(): StorageFailure {
  return new StorageFailure('closed', 'the storage is closed', { nothingWritten: true })
}

function nameOf(error: unknown): string {
  return typeof error === 'object' && error !== null && 'name' in error ? String(error.name) : typeof error
}
