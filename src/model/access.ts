import { isWellFormed, utf8Length } from './bytes.ts'
import { invalid, refuse } from './errors.ts'
import { ACCESS_TOKEN_ID_BYTES_MAX } from './limits.ts'
import {
  basinNameProblem,
  basinPrefixProblem,
  type NameRole,
  streamNameProblem,
  streamPrefixProblem,
} from './names.ts'
import { OPERATIONS, type Operation, type OperationLevel } from './operations.ts'

/** All operations of a level that read, or write: those that exist and those that will (service-interface.md "Access token"). */
export interface GroupPermissions {
  readonly read: boolean
  readonly write: boolean
}

export type OperationGroups = Readonly<Record<OperationLevel, GroupPermissions>>

/** The resources with this very name (none has the empty one), or all whose name begins with the prefix (an empty one: all). */
export type ResourceSet = { readonly exact: string } | { readonly prefix: string }

/** What a token permits: the operations of its groups and the single ones, on the resources. `null` matches no resource. */
export interface AccessScope {
  readonly basins: ResourceSet | null
  readonly streams: ResourceSet | null
  readonly accessTokens: ResourceSet | null
  readonly opGroups: OperationGroups
  /** In the order of {@link OPERATIONS}, each once. */
  readonly ops: readonly Operation[]
}

/** A scope as given: what is absent permits nothing. */
export interface AccessScopeInput {
  readonly basins?: ResourceSet | null | undefined
  readonly streams?: ResourceSet | null | undefined
  readonly accessTokens?: ResourceSet | null | undefined
  readonly opGroups?: Partial<Record<OperationLevel, Partial<GroupPermissions> | null>> | null | undefined
  readonly ops?: readonly Operation[] | null | undefined
}

/** A token to issue (wire-behaviour.md 9.1). */
export interface AccessTokenInput {
  /** Unique to the account, 1 to 96 bytes, neither `.` nor `..`. */
  readonly id: string
  /** In the future. By default, and at the latest, when the issuer's own token expires. */
  readonly expiresAt?: Date | null | undefined
  /** Puts the prefix of `scope.streams` before every stream name in requests and takes it off in responses. */
  readonly autoPrefixStreams?: boolean | undefined
  readonly scope: AccessScopeInput
}

/** What lists tell of a token. */
export interface AccessTokenInfo {
  readonly id: string
  /** From then on it is invalid; null is never. */
  readonly expiresAt: Date | null
  readonly autoPrefixStreams: boolean
  readonly scope: AccessScope
}

export function accessTokenIdProblem(id: string): string | undefined {
  if (id === '') return 'access token id must not be empty'
  if (id === '.' || id === '..') return 'access token id must not be "." or ".."'
  return accessTokenPrefixProblem(id, 'id')
}

export function accessTokenPrefixProblem(text: string, role: NameRole | 'id'): string | undefined {
  if (!isWellFormed(text)) return `access token ${role} must be valid Unicode`
  return utf8Length(text) > ACCESS_TOKEN_ID_BYTES_MAX
    ? `access token ${role} must not exceed ${ACCESS_TOKEN_ID_BYTES_MAX} bytes in length`
    : undefined
}

type NameProblem = (name: string) => string | undefined
type PrefixProblem = (prefix: string, role: 'prefix') => string | undefined

/** The rules of the names in each kind of resource set (wire-behaviour.md 8.1, 9.1). */
const RESOURCE_RULES = {
  basins: [(name) => basinNameProblem(name), basinPrefixProblem],
  streams: [streamNameProblem, streamPrefixProblem],
  accessTokens: [accessTokenIdProblem, accessTokenPrefixProblem],
} as const satisfies Record<string, readonly [NameProblem, PrefixProblem]>

export type ResourceKind = keyof typeof RESOURCE_RULES

/** What is wrong with the name or the prefix of a resource set. An empty name is right: it matches nothing. */
export function resourceSetProblem(kind: ResourceKind, set: ResourceSet): string | undefined {
  const [nameProblem, prefixProblem] = RESOURCE_RULES[kind]
  if ('prefix' in set) return prefixProblem(set.prefix, 'prefix')
  return set.exact === '' ? undefined : nameProblem(set.exact)
}

/** A token to issue, complete and independent of what it was made of. */
export interface NewAccessToken {
  readonly id: string
  /** Milliseconds; null when none was asked for. */
  readonly expiresAt: number | null
  readonly autoPrefixStreams: boolean
  readonly scope: AccessScope
}

/** Takes in a token to issue, each member once. Throws 422 `invalid` for what is wrong with it by itself (wire-behaviour.md 9.7). */
export function newAccessToken(input: AccessTokenInput, now: number): NewAccessToken {
  const { id, expiresAt, autoPrefixStreams = false } = input
  if (typeof id !== 'string') throw invalid('id must be a string', 'id')
  const expiresAtMs = expiresAt == null ? null : millisecondsOf(expiresAt)
  const token = { id, expiresAt: expiresAtMs, autoPrefixStreams, scope: accessScope(input.scope) }
  refuse(accessTokenIdProblem(token.id), 'id')
  if (typeof autoPrefixStreams !== 'boolean') {
    throw invalid('auto_prefix_streams must be true or false', 'auto_prefix_streams')
  }
  if (expiresAtMs !== null && expiresAtMs <= now) {
    throw invalid('expires_at must be in the future', 'expires_at')
  }
  const { streams } = token.scope
  if (autoPrefixStreams && !(streams !== null && 'prefix' in streams)) {
    throw invalid('Auto prefixing is only allowed for streams with prefix matching', 'auto_prefix_streams')
  }
  return token
}

/** Fills in what is absent, and brings the operations into their order. Throws 422 `invalid` for names and operations that are none. */
export function accessScope(input: AccessScopeInput): AccessScope {
  if (typeof input !== 'object' || input === null) throw invalid('scope must be an object', 'scope')
  const asked = new Set<unknown>(input.ops ?? [])
  for (const operation of asked) {
    if (!OPERATIONS.includes(operation as Operation)) {
      throw invalid(`scope.ops must be of ${OPERATIONS.join(', ')}`, 'scope.ops')
    }
  }
  return {
    basins: resourceSet('basins', input.basins),
    streams: resourceSet('streams', input.streams),
    accessTokens: resourceSet('accessTokens', input.accessTokens),
    opGroups: {
      account: groupPermissions(input.opGroups?.account),
      basin: groupPermissions(input.opGroups?.basin),
      stream: groupPermissions(input.opGroups?.stream),
    },
    ops: OPERATIONS.filter((operation) => asked.has(operation)),
  }
}

function resourceSet(kind: ResourceKind, input: ResourceSet | null | undefined): ResourceSet | null {
  if (input == null) return null
  const { exact, prefix } = input as { readonly exact?: unknown; readonly prefix?: unknown }
  const name = prefix ?? exact
  if (typeof name !== 'string' || (prefix != null && exact != null)) {
    throw invalid(`scope.${kind} must have one of exact and prefix, a string`, `scope.${kind}`)
  }
  const set = prefix == null ? { exact: name } : { prefix: name }
  refuse(resourceSetProblem(kind, set), `scope.${kind}`)
  return set
}

/** Dates beyond the year 9999 cannot be written as RFC 3339. */
const DATE_MS_MAX = 253_402_300_799_999

function millisecondsOf(date: Date): number {
  const milliseconds = typeof date.getTime === 'function' ? date.getTime() : Number.NaN
  if (Number.isNaN(milliseconds)) throw invalid('expires_at is not a date', 'expires_at')
  if (milliseconds > DATE_MS_MAX) throw invalid('expires_at must not be after the year 9999', 'expires_at')
  return milliseconds
}

function groupPermissions(input: Partial<GroupPermissions> | null | undefined): GroupPermissions {
  return { read: input?.read === true, write: input?.write === true }
}
