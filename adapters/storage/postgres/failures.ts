import { StorageFailure, type StorageFailureKind } from '../../../src/storage/errors.ts'

/** The knowledge about a statement that failed. */
export type ErrorKind =
  /** It was rolled back, and may succeed if it is repeated. */
  | 'retry'
  /** It may have been committed: the connection was lost. */
  | 'unknown'
  /** It was rolled back, and would fail again. */
  | 'rejected'

/** Codes of `SQLSTATE` (PostgreSQL, appendix A). */
export const DIVISION_BY_ZERO = '22012'
export const UNIQUE_VIOLATION = '23505'
/** The connection leads to a standby, or the role may not write. */
export const READ_ONLY = '25006'
/** Undefined table, undefined schema. */
export const NO_TABLES = ['42P01', '3F000']

const RETRIED = new Set([
  '40001', // serialization failure
  '40P01', // deadlock
  '55P03', // lock timeout
  READ_ONLY, // a primary may be back
  '53300', // too many connections
  '57P03', // the server is starting
])
/** 08: connection exceptions; 57P0x: shutdown; 40003: CockroachDB lost track of the commit. */
const UNKNOWN = /^(08|57P0|40003)/

/** The server answers and does not have the database. */
const NO_DATABASE = '3D000'
/** Wrong settings of a connection: the user, the database, the host, or those that a pooler refuses. */
const WRONG_SETTINGS = /^(28...|3D...|08P01|ENOTFOUND)$/

/** The `SQLSTATE` of an error, undefined if it is not from the server. */
export function sqlStateOf(error: unknown): string | undefined {
  const code = codeOf(error)
  // Excludes errors of the system, such as EPIPE.
  return code !== undefined && /^[0-9FHPX][0-9A-Z]{4}$/.test(code) ? code : undefined
}

export function errorKindOf(error: unknown): ErrorKind {
  const state = sqlStateOf(error)
  if (state === undefined) return 'unknown'
  if (RETRIED.has(state)) return 'retry'
  return UNKNOWN.test(state) ? 'unknown' : 'rejected'
}

/** Whether another attempt to connect would fail as well. `hasConnected` says whether one ever succeeded. */
export function isUnreachableForGood(error: unknown, hasConnected: boolean): boolean {
  const code = codeOf(error) ?? ''
  return code === NO_DATABASE || (!hasConnected && WRONG_SETTINGS.test(code))
}

export const WRITABLE = 'connect to the primary as a role that may write, or set `readOnly: true`'
const POOLER = 'if this is a pooler, add `?pgbouncer=true` to the connection string'

/** What users can do about a `SQLSTATE`. */
const MEANINGS: Readonly<Record<string, readonly [StorageFailureKind, remedy?: string]>> = {
  XX001: ['corrupt'],
  XX002: ['corrupt'],
  '53100': ['quota'],
  '53400': ['quota'],
  '42P01': ['io', 'restore the tables, or restart headwater to create empty ones'],
  [READ_ONLY]: ['denied', WRITABLE],
  '42501': ['denied', 'grant SELECT, INSERT, UPDATE and DELETE on all tables, or set `readOnly: true`'],
  // An unsupported startup parameter; an unknown or a duplicate prepared statement.
  '08P01': ['io', POOLER],
  '26000': ['io', POOLER],
  '42P05': ['io', POOLER],
}

/** The failure for an error of the driver or the server. */
export function databaseFailure(error: unknown, nothingWritten: boolean): StorageFailure {
  if (StorageFailure.is(error)) return error
  const state = sqlStateOf(error)
  const [kind, remedy]: readonly [StorageFailureKind, string?] = MEANINGS[state ?? ''] ?? ['io']
  const reason = state === undefined ? messageOf(error) : `${messageOf(error)} (${state})`
  const message = `PostgreSQL failed: ${reason}${remedy === undefined ? '' : `: ${remedy}`}`
  return new StorageFailure(kind, message, { nothingWritten, cause: error })
}

/** A failure that changed nothing. */
export function unwrittenFailure(kind: StorageFailureKind, message: string, cause?: unknown): StorageFailure {
  return new StorageFailure(kind, message, { nothingWritten: true, cause })
}

function codeOf(error: unknown): string | undefined {
  const code = Object(error).code
  return typeof code === 'string' ? code : undefined
}

function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  // Connecting to a name with several addresses fails with an error without a message.
  const [first] = (error as Partial<AggregateError>).errors ?? []
  return error.message || (first === undefined ? error.name : messageOf(first))
}
