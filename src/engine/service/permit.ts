import type { Grant, Resource } from '../../core/permission.ts'
import type { ResourceKind } from '../../model/access.ts'
import type { AppendBatch } from '../../model/append-input.ts'
import type { ListQuery, Page } from '../../model/info.ts'
import type { StreamRef } from '../../model/names.ts'
import type { Operation } from '../../model/operations.ts'
import type { CatalogChange } from '../../storage/contract.ts'
import type { StreamTarget } from '../streams/target.ts'

/** The permissions of an access token at the time of its look-up. */
export interface Identity {
  readonly grant: Grant
  /** SHA-256 of the token, in hexadecimal. */
  readonly digest: string
  /** Holds while the token is neither revoked nor replaced. */
  readonly unchanged: Extract<CatalogChange, { readonly kind: 'check' }>
}

/**
 * The permissions of a caller, and its names of streams. `tokens/token-permit.ts` implements it for tokens.
 */
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

/** The permit of a token's holder. */
export interface HolderPermit extends Permit {
  readonly identity: Identity
  /** Authorizes an append. Returns the target with the permissions applied. Throws as the others do. */
  resolveAppend(target: StreamTarget, batch: AppendBatch): StreamTarget
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
