import { StorageFailure, type StorageFailureKind } from '../../../src/storage/errors.ts'

/** The kinds by the name of the browser's error. */
const KINDS: Readonly<Record<string, StorageFailureKind>> = {
  QuotaExceededError: 'quota',
  // The file of a large value is missing or damaged.
  DataError: 'corrupt',
  NotReadableError: 'corrupt',
  // The database lacks an object store of the schema.
  NotFoundError: 'corrupt',
}

/** Errors that may not occur on a new connection. */
const CONNECTION_ERRORS = ['InvalidStateError', 'AbortError', 'UnknownError', 'TransactionInactiveError']

/** Converts an error of the browser. `nothingWritten` applies unless the kind of error implies it anyway. */
export function indexedDbFailure(error: unknown, nothingWritten: boolean): StorageFailure {
  if (StorageFailure.is(error)) return error
  const name = nameOf(error)
  const kind = KINDS[name] ?? 'io'
  const reason = error instanceof Error ? error.message : String(error)
  if (kind === 'quota') return quotaExceeded(error)
  return new StorageFailure(kind, `IndexedDB failed: ${name}: ${reason}`, { nothingWritten, cause: error })
}

/** A transaction that hits the quota is rolled back as a whole. */
export function quotaExceeded(cause?: unknown): StorageFailure {
  const message = 'the storage quota of this origin is exhausted: trim or delete streams'
  return new StorageFailure('quota', message, { nothingWritten: true, cause })
}

/** The same failure for a call whose first attempt may have succeeded. */
export function withUnknownOutcome(failure: StorageFailure): StorageFailure {
  return new StorageFailure(failure.kind, failure.message, { nothingWritten: false, cause: failure.cause })
}

/** Whether a new connection may help: browsers drop connections, Safari without an event. */
export function isConnectionError(error: unknown): boolean {
  return CONNECTION_ERRORS.includes(nameOf(error))
}

/** Whether a transaction was not begun, or ended before all its requests were made: it changed nothing. */
export function isRefused(error: unknown): boolean {
  return nameOf(error) === 'InvalidStateError'
}

/** Whether the error means that the quota was hit and nothing was written. */
export function isQuotaFailure(error: unknown): boolean {
  return StorageFailure.is(error) && error.kind === 'quota' && error.nothingWritten
}

/** Why a transaction was aborted. A failed commit may fire nothing but `abort`. */
export function abortReason({ error }: IDBTransaction): DOMException {
  return error ?? new DOMException('the transaction was aborted', 'AbortError')
}

function nameOf(error: unknown): string {
  return typeof error === 'object' && error !== null && 'name' in error ? String(error.name) : typeof error
}
