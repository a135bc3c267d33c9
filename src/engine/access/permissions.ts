import { scopedQuery, withinSet } from '../../core/listing.ts'
import {
  covers,
  type Grant,
  permits,
  prefixedName,
  prefixedQuery,
  type Resource,
  shownName,
} from '../../core/permission.ts'
import { OPERATIONS, type Operation, type ResourceKind } from '../../model/access.ts'
import type { AppendBatch } from '../../model/append-input.ts'
import { assertValid, invalid } from '../../model/errors.ts'
import type { ListQuery, Page } from '../../model/info.ts'
import { basinNameProblem, type StreamRef, streamNameProblem } from '../../model/names.ts'
import type { CatalogChange } from '../../storage/contract.ts'
import { permissionDenied } from '../streams/errors.ts'
import type { StreamTarget } from '../streams/target.ts'

/** The permissions of an access token at the time of its look-up. */
export interface Identity {
  readonly grant: Grant
  /** SHA-256 of the token, in hexadecimal. */
  readonly digest: string
  /** Holds while the token is neither revoked nor replaced. */
  readonly unchanged: Extract<CatalogChange, { readonly kind: 'check' }>
}

/** The permissions of a caller, and its names of streams. */
export interface Permit {
  /** The identity behind the token; undefined for the owner of the engine. */
  readonly identity: Identity | undefined
  /**
   * Throws `permission_denied` unless at least one of the operations is permitted on the resource, named as
   * the caller names it.
   */
  authorize(operations: readonly Operation[], resource: Resource): void
  /** Throws `permission_denied` unless the operation of each command in the batch is permitted. */
  authorizeCommands(ref: StreamRef, batch: AppendBatch): void
  /** Returns the stream that the caller means. Throws `invalid` for names. */
  resolveRef(ref: StreamRef): StreamRef
  /** Returns the target with the permissions applied. Throws `permission_denied`, and `invalid` for names. */
  resolveTarget(target: StreamTarget): StreamTarget
  /** Returns the name by which the caller knows a stream. */
  shownName(stream: string): string
  /** Whether the caller may see the resource with this name. */
  covers(kind: ResourceKind, name: string): boolean
  /**
   * Lists the resources that the caller may see, by their names in the storage. Resolves to undefined when it
   * may see none of those queried.
   */
  list<Item>(
    kind: ResourceKind,
    query: ListQuery,
    list: (query: ListQuery) => Promise<Page<Item>>,
    nameOf: (item: Item) => string,
  ): Promise<Page<Item> | undefined>
}

const allow = (): void => {}
const unchanged = <Value>(value: Value): Value => value

/** The owner of the engine may do everything. */
export const OWNER_PERMIT: Permit = {
  identity: undefined,
  authorize: allow,
  authorizeCommands: allow,
  resolveRef: unchanged,
  resolveTarget: unchanged,
  shownName: unchanged,
  covers: () => true,
  list: (_kind, query, list) => list(query),
}

/** The permissions of the holder of a token (docs/protocol.md "Permissions"). */
export class TokenPermit implements Permit {
  readonly identity: Identity

  constructor(identity: Identity) {
    this.identity = identity
  }

  authorize(operations: readonly Operation[], { basin, stream, tokenId }: Resource): void {
    const { grant } = this.identity
    const named = { basin, stream: stream === undefined ? undefined : grant.streamPrefix + stream, tokenId }
    let isPermitted = false
    for (const operation of operations) {
      if (!OPERATIONS.includes(operation)) throw invalid(`unknown operation \`${operation}\``, 'operation')
      isPermitted ||= permits(grant, operation, named)
    }
    if (!isPermitted) {
      throw permissionDenied(`the access token does not permit ${operations.join(' or ')}`)
    }
  }

  authorizeCommands(ref: StreamRef, { records }: AppendBatch): void {
    for (const { command } of records) {
      // Closing takes no permission beyond that to append.
      if (command && command.kind !== 'close') this.authorize([command.kind], ref)
    }
  }

  /**
   * Rejects a name that breaks the rules, which could address another stream's document, and a name that is
   * too long together with the token's prefix (docs/protocol.md "Automatic prefixes").
   */
  resolveRef({ basin, stream }: StreamRef): StreamRef {
    assertValid(basinNameProblem(basin), 'basin')
    assertValid(streamNameProblem(stream), 'stream')
    const { grant } = this.identity
    if (grant.streamPrefix === '') return { basin, stream }
    return { basin, stream: prefixedName(grant, stream), shownAs: stream }
  }

  resolveTarget(target: StreamTarget): StreamTarget {
    const { always, config } = target.creation
    if (always) {
      this.authorize(['create-basin'], { basin: target.ref.basin })
      this.authorize(['create-stream'], target.ref)
    }
    const ref = this.resolveRef(target.ref)
    // A basin's configuration grants streams with that configuration, not with one of the caller's choice.
    const isConfigDenied = config !== undefined && !permits(this.identity.grant, 'create-stream', ref)
    return {
      ...target,
      ref,
      creation: { ...target.creation, ...(isConfigDenied && { config: undefined, isConfigDenied }) },
    }
  }

  /** Authorizes an append. Returns the target with the permissions applied. Throws as the others do. */
  resolveAppend(target: StreamTarget, batch: AppendBatch): StreamTarget {
    this.authorize(['append'], target.ref)
    const resolved = this.resolveTarget(target)
    this.authorizeCommands(target.ref, batch)
    return resolved
  }

  shownName(stream: string): string {
    return shownName(this.identity.grant, stream)
  }

  covers(kind: ResourceKind, name: string): boolean {
    return covers(this.identity.grant.scope[kind], name)
  }

  async list<Item>(
    kind: ResourceKind,
    query: ListQuery,
    list: (query: ListQuery) => Promise<Page<Item>>,
    nameOf: (item: Item) => string,
  ): Promise<Page<Item> | undefined> {
    const { grant } = this.identity
    const set = grant.scope[kind]
    const scoped = scopedQuery(set, kind === 'streams' ? prefixedQuery(grant, query) : query)
    return scoped === undefined ? undefined : withinSet(set, await list(scoped), nameOf)
  }
}
