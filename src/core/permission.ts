import {
  type AccessScope,
  GROUP_OF,
  OPERATION_LEVELS,
  type Operation,
  type OperationLevel,
  type ResourceSet,
} from '../model/access.ts'
import { utf8Length } from '../model/bytes.ts'
import { invalid } from '../model/errors.ts'
import type { ListQuery, Page } from '../model/info.ts'
import { STREAM_NAME_BYTES_MAX } from '../model/limits.ts'
import type { NameRole } from '../model/names.ts'

export interface Grant {
  /** The id of the issued token; null for the owner. */
  readonly tokenId: string | null
  readonly scope: AccessScope
  /** Milliseconds; null is never. */
  readonly expiresAt: number | null
  /** The prefix of every stream name that the caller uses; `''` is none. */
  readonly streamPrefix: string
}

/**
 * The resource of an operation. `permits` takes stream names with the prefix of the token; `Permit.authorize`
 * takes them without and adds it. Absent members do not restrict the operation.
 */
export interface Resource {
  readonly basin?: string | undefined
  readonly stream?: string | undefined
  readonly tokenId?: string | undefined
}

const ALL: ResourceSet = { prefix: '' }
const READ_AND_WRITE = { read: true, write: true }

/** The permissions of the root token and of the owner of the process: everything, without expiry. */
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

/** Whether a grant permits an operation on a resource. All authorization uses it. */
export function permits({ scope }: Grant, operation: Operation, resource: Resource): boolean {
  return (
    permitsOperation(scope, operation) &&
    (resource.basin === undefined || covers(scope.basins, resource.basin)) &&
    (resource.stream === undefined || covers(scope.streams, resource.stream)) &&
    (resource.tokenId === undefined || covers(scope.accessTokens, resource.tokenId))
  )
}

/** Whether a scope contains an operation, as part of a group or on its own. */
export function permitsOperation(scope: AccessScope, operation: Operation): boolean {
  const [level, access] = GROUP_OF[operation]
  return scope.opGroups[level][access] || scope.ops.includes(operation)
}

/** Whether a scope permits nothing. A group counts, even if no operation belongs to it at present. */
export function isEmptyScope({ opGroups, ops }: AccessScope): boolean {
  return (
    ops.length === 0 && OPERATION_LEVELS.every((level) => !opGroups[level].read && !opGroups[level].write)
  )
}

/** Whether a resource set contains a name. */
export function covers(set: ResourceSet | null, name: string): boolean {
  if (set === null) return false
  return 'prefix' in set ? name.startsWith(set.prefix) : set.exact !== '' && set.exact === name
}

/** The part of its issuer's permissions that a token exceeds, if any (docs/protocol.md "Permissions"). */
export function exceeds(
  issuer: Grant,
  wanted: { readonly scope: AccessScope; readonly expiresAt: number | null },
): 'operations' | 'basins' | 'streams' | 'access tokens' | 'expiry' | undefined {
  const { scope } = wanted
  if (!scope.ops.every((operation) => permitsOperation(issuer.scope, operation))) return 'operations'
  // A group is more than its present operations: it includes those of later versions.
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

/** Restricts a list query to a resource set (docs/protocol.md "Permissions"); undefined if none can match. */
export function scopedQuery(set: ResourceSet | null, query: ListQuery): ListQuery | undefined {
  if (set === null) return undefined
  const { prefix = '' } = query
  if ('prefix' in set) {
    if (prefix.startsWith(set.prefix)) return query
    return set.prefix.startsWith(prefix) ? { ...query, prefix: set.prefix } : undefined
  }
  return set.exact !== '' && set.exact.startsWith(prefix) ? { ...query, prefix: set.exact } : undefined
}

/** Removes names from a page that match the query of {@link scopedQuery} but not the resource set. */
export function withinSet<Item>(
  set: ResourceSet | null,
  page: Page<Item>,
  nameOf: (item: Item) => string,
): Page<Item> {
  if (set === null || 'prefix' in set) return page
  return { items: page.items.filter((item) => covers(set, nameOf(item))), hasMore: false }
}

/** A token's holder, whose stream names may be prefixed (docs/protocol.md "Automatic prefixes"). */
type Prefixed = Pick<Grant, 'streamPrefix'>

/** The name of a stream in the storage. Throws `invalid` if it is too long together with the prefix. */
export function prefixedName({ streamPrefix }: Prefixed, name: string): string {
  return checkedLength(streamPrefix + name, streamPrefix, 'name', 'stream')
}

/** The name of a stream as its holder knows it. */
export function shownName({ streamPrefix }: Prefixed, prefixed: string): string {
  return prefixed.slice(streamPrefix.length)
}

/** The list query with the prefix of the holder. Throws `invalid` as {@link prefixedName} does. */
export function prefixedQuery({ streamPrefix }: Prefixed, query: ListQuery): ListQuery {
  if (streamPrefix === '') return query
  const { prefix = '', startAfter = '' } = query
  return {
    ...query,
    prefix: checkedLength(streamPrefix + prefix, streamPrefix, 'prefix', 'prefix'),
    // Also for the first page: a stream named as the prefix has no name for the caller.
    startAfter: checkedLength(streamPrefix + startAfter, streamPrefix, 'start-after', 'startAfter'),
  }
}

function checkedLength(text: string, streamPrefix: string, role: NameRole, field: string): string {
  if (streamPrefix === '' || utf8Length(text) <= STREAM_NAME_BYTES_MAX) return text
  throw invalid(
    `stream ${role} must not exceed ${STREAM_NAME_BYTES_MAX} bytes in length together with the prefix of the access token`,
    field,
  )
}
