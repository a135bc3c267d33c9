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

const RETRIED = new Set([
  '40001', // serialization failure
  '40P01', // deadlock
  '55P03', // lock timeout
  '25006', // read only: the connection leads to a standby
  '53300', // too many connections
  '57P03', // the server is starting
])
/** 08: connection exceptions; 57P0x: shutdown; 40003: CockroachDB lost track of the commit. */
const UNKNOWN = /^(08|57P0|40003)/

/**
 * A pooler in transaction mode passes statements to any connection, where the prepared one is missing or
 * exists already. After a change of the tables, its result may not be what it was.
 */
const NOT_PREPARED = new Set(['26000', '42P05', '0A000'])

/** Raised by the connection attempt of a client with wrong settings. */
const UNREACHABLE_FOR_GOOD = /^(28|3D|ENOTFOUND$)/
/** The database does not exist. */
const NO_DATABASE = '3D000'
/** The codes of servers that know only a part of PostgreSQL's syntax, functions, settings and types. */
export const UNKNOWN_TO_SERVER = ['42601', '42883', '42703', '42704', '0A000', '22023', '42804', 'XX000']
/** Undefined table, undefined schema. */
export const NO_TABLES = ['42P01', '3F000']

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

/** Whether a prepared statement was rejected because of how it was prepared. It was rolled back. */
export function isNotPrepared(error: unknown): boolean {
  return NOT_PREPARED.has(sqlStateOf(error) ?? '')
}

/** Whether another attempt to connect would fail as well. */
export function isUnreachableForGood(error: unknown): boolean {
  return UNREACHABLE_FOR_GOOD.test(codeOf(error) ?? '')
}

/** Whether the server answers and does not have the database. */
export function isDatabaseMissing(error: unknown): boolean {
  return sqlStateOf(error) === NO_DATABASE
}

/** Whether the server, or a pooler before it, refused or does not know a setting of the connection. */
export function isRefusedStartup(error: unknown): boolean {
  if (/startup parameter|command-line option/i.test(messageOf(error))) return true
  // Undefined object, invalid value, feature not supported.
  return /^(42704|22023|0A000)$/.test(sqlStateOf(error) ?? '')
}

const KINDS: Readonly<Record<string, StorageFailureKind>> = {
  XX001: 'corrupt',
  XX002: 'corrupt',
  '25006': 'denied', // read-only transaction
  '42501': 'denied', // insufficient privilege
}

/** The failure for an error of the driver or the server. */
export function databaseFailure(error: unknown, nothingWritten: boolean): StorageFailure {
  if (StorageFailure.is(error)) return error
  const state = sqlStateOf(error)
  if (state !== undefined && /^(53100|53400)$/.test(state)) {
    const message = 'the database has no space left: trim or delete streams, or enlarge it'
    return new StorageFailure('quota', message, { nothingWritten, cause: error })
  }
  if (NO_TABLES.includes(state ?? '')) {
    const remedy = 'restore them, or restart headwater to create empty ones'
    const message = `the tables are missing (${messageOf(error)}): ${remedy}`
    return new StorageFailure('io', message, { nothingWritten, cause: error })
  }
  const kind = KINDS[state ?? ''] ?? 'io'
  const reason = state === undefined ? messageOf(error) : `${messageOf(error)} (${state})`
  return new StorageFailure(kind, `PostgreSQL failed: ${reason}`, { nothingWritten, cause: error })
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
