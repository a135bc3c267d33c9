import { assertValid, invalid } from './errors.ts'
import { ACCESS_TOKEN_ID_BYTES_MAX } from './limits.ts'
import {
  basinNameProblem,
  basinPrefixProblem,
  type NameRole,
  streamNameProblem,
  streamPrefixProblem,
  textProblem,
} from './names.ts'
import {
  assertMembers,
  type Clearable,
  listOf,
  type MembersOf,
  millisecondsOf,
  oneOf,
  orNull,
  type Settable,
  type Time,
  unchecked,
} from './validation.ts'

export const OPERATION_LEVELS = ['account', 'basin', 'stream'] as const

export type OperationLevel = (typeof OPERATION_LEVELS)[number]

type Group = readonly [level: OperationLevel, access: keyof GroupPermissions]

/** The group of each operation, in the order of lists (docs/protocol.md "Permissions"). Persisted. */
export const GROUP_OF = {
  'list-basins': ['account', 'read'],
  'create-basin': ['account', 'write'],
  'delete-basin': ['account', 'write'],
  'reconfigure-basin': ['account', 'write'],
  'get-basin-config': ['account', 'read'],
  'issue-access-token': ['account', 'write'],
  'revoke-access-token': ['account', 'write'],
  'list-access-tokens': ['account', 'read'],
  'list-streams': ['basin', 'read'],
  'create-stream': ['basin', 'write'],
  'delete-stream': ['basin', 'write'],
  'get-stream-config': ['basin', 'read'],
  'reconfigure-stream': ['basin', 'write'],
  'check-tail': ['stream', 'read'],
  append: ['stream', 'write'],
  read: ['stream', 'read'],
  trim: ['stream', 'write'],
  fence: ['stream', 'write'],
  'account-metrics': ['account', 'read'],
  'basin-metrics': ['basin', 'read'],
  'stream-metrics': ['stream', 'read'],
  'list-locations': ['account', 'read'],
  'get-default-location': ['account', 'read'],
  'set-default-location': ['account', 'write'],
} as const satisfies Record<string, Group>

/** An operation that a token can permit. */
export type Operation = keyof typeof GROUP_OF

/** Every operation that a token can permit, in the order of lists (docs/protocol.md "Operations"). */
export const OPERATIONS = Object.keys(GROUP_OF) as readonly Operation[]

/** Permits the operations of a level that read or write, including those of later versions. */
export interface GroupPermissions {
  /** Permits every operation of the level that reads. */
  readonly read: boolean
  /** Permits every operation of the level that writes. */
  readonly write: boolean
}

/** The resource with this name, or all whose names begin with the prefix. `''` matches none, or all. */
export type ResourceSet = { readonly exact: string } | { readonly prefix: string }

/** The operations that a token permits, and the resources that it permits them on. `null` matches none. */
export interface AccessScope {
  readonly basins: ResourceSet | null
  /** The streams, in all of these basins. */
  readonly streams: ResourceSet | null
  /** The access tokens, by id. */
  readonly accessTokens: ResourceSet | null
  readonly opGroups: Readonly<Record<OperationLevel, GroupPermissions>>
  /** Permitted operations besides the groups. Without duplicates, in the order of {@link OPERATIONS}. */
  readonly ops: readonly Operation[]
}

/** The scope of a token to issue. Absent members permit nothing; at least one operation is required. */
export interface AccessScopeInput extends Clearable<Omit<AccessScope, 'opGroups'>> {
  readonly opGroups?:
    | Clearable<Readonly<Record<OperationLevel, Settable<GroupPermissions>>>>
    | null
    | undefined
}

/** A token to issue (docs/protocol.md "Issuing a token"). */
export interface AccessTokenInput {
  /** Unique in the account; 1 to 96 bytes, neither `.` nor `..`. */
  readonly id: string
  /** A time in the future. By default, and at the latest, when the issuer's own token expires. */
  readonly expiresAt?: Time | null | undefined
  /** @internal How `expiresAt` was written over HTTP, which lists it in the same way. */
  readonly expiresAtText?: string | undefined
  /** Adds the prefix of `scope.streams` to stream names and removes it from responses. Default false. */
  readonly autoPrefixStreams?: boolean | undefined
  readonly scope: AccessScopeInput
}

/** An issued token in a list. */
export interface AccessTokenInfo {
  readonly id: string
  /** The time at which it expires; null if it never does. */
  readonly expiresAt: Date | null
  /** @internal How it was written over HTTP; undefined for a token that was issued otherwise. */
  readonly expiresAtText?: string | undefined
  /** Whether stream names are prefixed with the prefix of `scope.streams`. */
  readonly autoPrefixStreams: boolean
  readonly scope: AccessScope
}

/** The problem with the id of an access token, or undefined: 1 to 96 bytes, as the name of a stream. */
export function accessTokenIdProblem(id: string): string | undefined {
  return textProblem('access token id', id, ACCESS_TOKEN_ID_BYTES_MAX, 'name')
}

/** The problem with a `prefix` or `startAfter` of a list of access tokens, or undefined. */
export function accessTokenPrefixProblem(text: string, role: NameRole): string | undefined {
  const kind = role === 'start-after' ? 'any' : 'beginning'
  return textProblem(`access token ${role}`, text, ACCESS_TOKEN_ID_BYTES_MAX, kind)
}

type NameProblem = (name: string) => string | undefined
type PrefixProblem = (prefix: string, role: 'prefix') => string | undefined

/** The rules of names and prefixes in each kind of resource set (docs/protocol.md "Names"). */
const RESOURCE_RULES = {
  basins: [(name) => basinNameProblem(name), basinPrefixProblem],
  streams: [streamNameProblem, streamPrefixProblem],
  accessTokens: [accessTokenIdProblem, accessTokenPrefixProblem],
} as const satisfies Record<string, readonly [NameProblem, PrefixProblem]>

export type ResourceKind = keyof typeof RESOURCE_RULES

/** The problem with the name or prefix of a resource set, if any. An empty name matches nothing. */
export function resourceSetProblem(kind: ResourceKind, set: ResourceSet): string | undefined {
  const [nameProblem, prefixProblem] = RESOURCE_RULES[kind]
  if ('prefix' in set) return prefixProblem(set.prefix, 'prefix')
  return set.exact === '' ? undefined : nameProblem(set.exact)
}

const PERMISSIONS = orNull({ read: 'boolean', write: 'boolean' })
const RESOURCES = orNull({ exact: unchecked, prefix: unchecked })

const SCOPE: MembersOf<AccessScopeInput> = {
  basins: RESOURCES,
  streams: RESOURCES,
  accessTokens: RESOURCES,
  opGroups: orNull({ account: PERMISSIONS, basin: PERMISSIONS, stream: PERMISSIONS }),
  ops: orNull(listOf(oneOf(OPERATIONS))),
}

/** A validated token to issue, which shares no object with its input. */
export interface NewAccessToken extends Omit<AccessTokenInfo, 'expiresAt'> {
  /** Milliseconds since the Unix epoch; null if none was given. */
  readonly expiresAt: number | null
}

const ACCESS_TOKEN_INPUT: MembersOf<AccessTokenInput> = {
  id: unchecked,
  expiresAt: unchecked,
  expiresAtText: 'string',
  autoPrefixStreams: 'boolean',
  scope: unchecked,
}

/** Validates a token to issue, and reads each member once: it may have getters. Throws `invalid`. */
export function newAccessToken(input: AccessTokenInput): NewAccessToken {
  assertMembers(input, ACCESS_TOKEN_INPUT, 'token')
  const { id, expiresAt, expiresAtText, autoPrefixStreams = false } = input
  assertValid(accessTokenIdProblem(id), 'id')
  const scope = accessScope(input.scope)
  if (autoPrefixStreams && !(scope.streams !== null && 'prefix' in scope.streams)) {
    throw invalid('Auto prefixing is only allowed for streams with prefix matching', 'autoPrefixStreams')
  }
  const expiresAtMs = expiresAt == null ? null : expiryOf(expiresAt)
  return { id, expiresAt: expiresAtMs, expiresAtText, autoPrefixStreams, scope }
}

/** Completes a scope and sorts its operations. Throws `invalid` for invalid names and unknown operations. */
export function accessScope(input: AccessScopeInput): AccessScope {
  assertMembers(input, SCOPE, 'scope', 'scope.')
  return {
    basins: resourceSet('basins', input.basins),
    streams: resourceSet('streams', input.streams),
    accessTokens: resourceSet('accessTokens', input.accessTokens),
    opGroups: {
      account: groupPermissions(input.opGroups?.account),
      basin: groupPermissions(input.opGroups?.basin),
      stream: groupPermissions(input.opGroups?.stream),
    },
    ops: OPERATIONS.filter((operation) => input.ops?.includes(operation)),
  }
}

function resourceSet(kind: ResourceKind, input: ResourceSet | null | undefined): ResourceSet | null {
  if (input == null) return null
  const field = `scope.${kind}`
  const { exact, prefix } = input as { readonly exact?: unknown; readonly prefix?: unknown }
  const name = prefix ?? exact
  if (typeof name !== 'string' || (prefix != null && exact != null)) {
    throw invalid(`\`${field}\` must have either \`exact\` or \`prefix\`, a string`, field)
  }
  const set = prefix == null ? { exact: name } : { prefix: name }
  assertValid(resourceSetProblem(kind, set), field)
  return name === '' && prefix == null ? null : set
}

/** The last millisecond of the year 9999: RFC 3339 cannot represent later times. */
const TIME_MAX = 253_402_300_799_999

function expiryOf(time: Time): number {
  const milliseconds = millisecondsOf(time)
  if (!Number.isFinite(milliseconds)) {
    throw invalid('`expiresAt` must be a Date or milliseconds since the Unix epoch', 'expiresAt')
  }
  if (milliseconds > TIME_MAX) throw invalid('`expiresAt` must not be after the year 9999', 'expiresAt')
  return Math.floor(milliseconds)
}

function groupPermissions(input: Settable<GroupPermissions> | null | undefined): GroupPermissions {
  return { read: input?.read ?? false, write: input?.write ?? false }
}
