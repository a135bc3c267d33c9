import { wholeName } from '../../core/auto-prefix.ts'
import { type Grant, permits, type Resource } from '../../core/permission.ts'
import { invalid, refuse } from '../../model/errors.ts'
import { basinNameProblem, streamNameProblem } from '../../model/names.ts'
import { OPERATIONS, type Operation } from '../../model/operations.ts'
import type { Identity } from '../access/identity.ts'
import type { TokenWatch } from '../access/open-tokens.ts'
import type { TokenHolder } from '../access/token-holder.ts'
import type { StreamRef } from '../context.ts'
import { permissionDenied } from '../errors.ts'

/** Where every call of a token's holder goes through. Behind it everything is permitted. */
export class Gate {
  readonly #holder: TokenHolder

  constructor(holder: TokenHolder) {
    this.#holder = holder
  }

  /**
   * Resolves to who calls, when that may do at least one of the operations on the resource (names as the caller uses them). Rejects with 401
   * `authn` or 403 `permission_denied`.
   */
  async permit(operations: Operation | readonly Operation[], resource: Resource = {}): Promise<Identity> {
    const identity = await this.#holder.identify()
    requirePermission(identity.grant, operations, resource)
    return identity
  }

  /** Does what one operation asks for, if it is permitted. */
  async run<Result>(
    operation: Operation,
    resource: Resource,
    work: (grant: Grant, identity: Identity) => Promise<Result>,
  ): Promise<Result> {
    const identity = await this.permit(operation, resource)
    return work(identity.grant, identity)
  }

  /** For as long as a session of the caller is open. Rejects with `authn` when the token was revoked since it was looked at. */
  watch(identity: Identity): Promise<TokenWatch> {
    return this.#holder.follow(identity)
  }
}

/** Throws 403 `permission_denied` unless the grant permits at least one of the operations on the resource. */
export function requirePermission(
  grant: Grant,
  operations: Operation | readonly Operation[],
  resource: Resource,
): void {
  const { basin, stream, tokenId } = resource
  const meant = { basin, stream: stream === undefined ? undefined : grant.streamPrefix + stream, tokenId }
  const asked = Array.isArray(operations) ? (operations as readonly Operation[]) : [operations as Operation]
  for (const operation of asked) {
    if (!OPERATIONS.includes(operation)) throw invalid('there is no such operation', 'operation')
  }
  if (!asked.some((operation) => permits(grant, operation, meant))) throw permissionDenied()
}

/**
 * The stream that the caller means. Throws 422 `invalid` for names that are none, which could lead elsewhere in a storage that has both in one key,
 * and when the name is too long with its prefix (wire-behaviour.md 9.8).
 */
export function prefixed(grant: Grant, ref: StreamRef): StreamRef {
  refuse(basinNameProblem(ref.basin), 'basin')
  refuse(streamNameProblem(ref.stream), 'stream')
  if (grant.streamPrefix === '') return ref
  return { basin: ref.basin, stream: wholeName(grant, ref.stream), shownAs: ref.stream }
}
