import { GROUP_OF, type Grant, permits, type Resource } from '../../core/permission.ts'
import { prefixedName, scopedQuery, withinSet } from '../../core/scope.ts'
import type { ResourceSet } from '../../model/access.ts'
import { OPERATIONS, type Operation } from '../../model/access.ts'
import type { AppendBatch } from '../../model/append-input.ts'
import { assertValid, invalid } from '../../model/errors.ts'
import type { ListQuery, Page } from '../../model/info.ts'
import { basinNameProblem, type StreamRef, streamNameProblem } from '../../model/names.ts'
import { permissionDenied } from '../service/errors.ts'
import type { StreamTarget } from '../service/stream-target.ts'

/**
 * The operations that each method of the API requires: at least one of them. A method with two creates or
 * changes, and the service checks the one that applies once it has decided. Commands in an append require
 * their own operation as well (docs/protocol.md "Permissions").
 */
export const REQUIRED_OPERATIONS = {
  createBasin: ['create-basin'],
  ensureBasin: ['create-basin', 'reconfigure-basin'],
  listBasins: ['list-basins'],
  basinConfig: ['get-basin-config'],
  reconfigureBasin: ['reconfigure-basin'],
  deleteBasin: ['delete-basin'],
  createStream: ['create-stream'],
  ensureStream: ['create-stream', 'reconfigure-stream'],
  listStreams: ['list-streams'],
  streamConfig: ['get-stream-config'],
  reconfigureStream: ['reconfigure-stream'],
  deleteStream: ['delete-stream'],
  checkTail: ['check-tail'],
  append: ['append'],
  appendSession: ['append'],
  read: ['read'],
  readSession: ['read'],
  issueAccessToken: ['issue-access-token'],
  listAccessTokens: ['list-access-tokens'],
  revokeAccessToken: ['revoke-access-token'],
  accountMetrics: ['account-metrics'],
  basinMetrics: ['basin-metrics'],
  streamMetrics: ['stream-metrics'],
  listLocations: ['list-locations'],
  defaultLocation: ['get-default-location'],
  setDefaultLocation: ['set-default-location'],
} as const satisfies Record<string, readonly [Operation, Operation?]>

export type Method = keyof typeof REQUIRED_OPERATIONS

/**
 * Throws `permission_denied` unless the grant permits at least one of the operations on the resource, named
 * as the caller names it.
 */
export function authorize(grant: Grant, operations: readonly Operation[], resource: Resource): void {
  const { basin, stream, tokenId } = resource
  const named = { basin, stream: stream === undefined ? undefined : grant.streamPrefix + stream, tokenId }
  for (const operation of operations) {
    if (!OPERATIONS.includes(operation)) throw invalid(`unknown operation \`${operation}\``, 'operation')
  }
  if (!operations.some((operation) => permits(grant, operation, named))) throw permissionDenied()
}

/** Throws `permission_denied` unless the grant permits the operation of each command in the batch. */
export function authorizeCommands(grant: Grant, ref: StreamRef, { records }: AppendBatch): void {
  for (const { command } of records) if (command) authorize(grant, [command.kind], ref)
}

/**
 * Returns the stream that the caller means. Throws `invalid` for a name that breaks the rules, which could
 * address another stream's document, and for a name that is too long together with the token's prefix
 * (docs/protocol.md "Automatic prefixes").
 */
export function resolveRef(grant: Grant, ref: StreamRef): StreamRef {
  assertValid(basinNameProblem(ref.basin), 'basin')
  assertValid(streamNameProblem(ref.stream), 'stream')
  if (grant.streamPrefix === '') return ref
  return { basin: ref.basin, stream: prefixedName(grant, ref.stream), shownAs: ref.stream }
}

/**
 * Returns the target with the caller's permissions applied. Throws `permission_denied`, and `invalid` for
 * names.
 */
export function resolveTarget(grant: Grant, target: StreamTarget): StreamTarget {
  const { always } = target.creation
  if (always) {
    authorize(grant, ['create-basin'], { basin: target.ref.basin })
    authorize(grant, ['create-stream'], target.ref)
  }
  const ref = resolveRef(grant, target.ref)
  // A basin's configuration grants streams with that configuration, not with one of the caller's choice.
  const isConfigDenied = target.creation.config !== undefined && !permits(grant, 'create-stream', ref)
  return { ...target, ref, creation: isConfigDenied ? { always, isConfigDenied } : target.creation }
}

/** Which operation a successful call counts as in the usage metrics. */
export function countedOperation(method: Method, result: unknown): Operation {
  const [first, second] = REQUIRED_OPERATIONS[method] as readonly [Operation, Operation?]
  if (second === undefined) return first
  return (result as { readonly result: string }).result === 'created' ? first : second
}

/** Whether the usage of an operation belongs to the account rather than to a basin. */
export function isAccountOperation(operation: Operation): boolean {
  return GROUP_OF[operation][0] === 'account'
}

/**
 * Lists the part of a collection that a token's scope covers. Resolves to undefined when the scope excludes
 * everything queried.
 */
export async function listScoped<Item>(
  set: ResourceSet | null,
  query: ListQuery,
  list: (query: ListQuery) => Promise<Page<Item>>,
  nameOf: (item: Item) => string,
): Promise<Page<Item> | undefined> {
  const scoped = scopedQuery(set, query)
  return scoped === undefined ? undefined : withinSet(set, await list(scoped), nameOf)
}
