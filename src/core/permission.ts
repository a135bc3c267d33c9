import type { AccessScope, ResourceSet } from '../model/access.ts'
import { OPERATION_LEVELS, type Operation, type OperationLevel } from '../model/operations.ts'

/** What a caller may do: that of an access token, or everything. */
export interface Grant {
  /** Null: not that of an issued token. */
  readonly tokenId: string | null
  readonly scope: AccessScope
  /** Milliseconds; null is never. */
  readonly expiresAt: number | null
  /** Stands before every stream name that the caller gives or gets; `''` is none. */
  readonly streamPrefix: string
}

/** What an operation is about; a stream by its whole name. Undefined: nothing of the kind. */
export interface Resource {
  readonly basin?: string | undefined
  readonly stream?: string | undefined
  readonly tokenId?: string | undefined
}

type GroupPermission = readonly [level: OperationLevel, access: 'read' | 'write']

/** Which group each operation belongs to (rulings.md "Tokens"). */
export const GROUP_OF: Readonly<Record<Operation, GroupPermission>> = {
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
}

const ALL: ResourceSet = { prefix: '' }
const READ_AND_WRITE = { read: true, write: true }

/** Whoever holds the engine, and the root token: everything, for ever (rulings.md "Tokens"). */
export const OWNER: Grant = {
  tokenId: null,
  scope: {
    basins: ALL,
    streams: ALL,
    accessTokens: ALL,
    opGroups: { account: READ_AND_WRITE, basin: READ_AND_WRITE, stream: READ_AND_WRITE },
    ops: [],
  },
  expiresAt: null,
  streamPrefix: '',
}

/** Whether a grant permits an operation on a resource. The one decision of access: everything asks it. */
export function permits({ scope }: Grant, operation: Operation, resource: Resource): boolean {
  return (
    permitsOperation(scope, operation) &&
    (resource.basin === undefined || covers(scope.basins, resource.basin)) &&
    (resource.stream === undefined || covers(scope.streams, resource.stream)) &&
    (resource.tokenId === undefined || covers(scope.accessTokens, resource.tokenId))
  )
}

/** The union of the groups, as they are now, and the single operations. */
export function permitsOperation(scope: AccessScope, operation: Operation): boolean {
  const [level, access] = GROUP_OF[operation]
  return scope.opGroups[level][access] || scope.ops.includes(operation)
}

/** Whether the scope permits anything at all. A group does, whatever belongs to it at the moment. */
export function isEmptyScope({ opGroups, ops }: AccessScope): boolean {
  return (
    ops.length === 0 && OPERATION_LEVELS.every((level) => !opGroups[level].read && !opGroups[level].write)
  )
}

export function covers(set: ResourceSet | null, name: string): boolean {
  if (set === null) return false
  return 'prefix' in set ? name.startsWith(set.prefix) : set.exact !== '' && set.exact === name
}

/** What of its issuer's permissions a token to issue exceeds, or undefined (rulings.md "Tokens"). */
export function exceeds(
  issuer: Grant,
  wanted: { readonly scope: AccessScope; readonly expiresAt: number | null },
): 'operations' | 'basins' | 'streams' | 'access tokens' | 'expiry' | undefined {
  const { scope } = wanted
  if (!scope.ops.every((operation) => permitsOperation(issuer.scope, operation))) return 'operations'
  // A group is more than the operations that it has now: those will be in it that are added later.
  const hasGroup = (level: OperationLevel, access: 'read' | 'write') =>
    issuer.scope.opGroups[level][access] || !scope.opGroups[level][access]
  if (!OPERATION_LEVELS.every((level) => hasGroup(level, 'read') && hasGroup(level, 'write'))) {
    return 'operations'
  }
  if (!includes(issuer.scope.basins, scope.basins)) return 'basins'
  if (!includes(issuer.scope.streams, scope.streams)) return 'streams'
  if (!includes(issuer.scope.accessTokens, scope.accessTokens)) return 'access tokens'
  if (issuer.expiresAt === null) return undefined
  return wanted.expiresAt === null || wanted.expiresAt > issuer.expiresAt ? 'expiry' : undefined
}

/** Whether every resource of `inner` is in `outer`. */
function includes(outer: ResourceSet | null, inner: ResourceSet | null): boolean {
  if (inner === null) return true
  if ('prefix' in inner) return outer !== null && 'prefix' in outer && inner.prefix.startsWith(outer.prefix)
  return inner.exact === '' || covers(outer, inner.exact)
}
