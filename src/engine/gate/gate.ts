import { type Grant, permits, type Resource } from '../../core/permission.ts'
import type { Operation } from '../../model/access.ts'
import { utf8Length } from '../../model/bytes.ts'
import { invalid } from '../../model/errors.ts'
import { STREAM_NAME_BYTES_MAX } from '../../model/limits.ts'
import { basinNameProblem, type NameRole, refuse, streamNameProblem } from '../../model/names.ts'
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
   * Resolves to what the caller may do, when that includes at least one of the operations on the resource (names as the caller uses them).
   * Rejects with 401 `authn` or 403 `permission_denied`.
   */
  async permit(operations: Operation | readonly Operation[], resource: Resource = {}): Promise<Grant> {
    const { grant } = await this.#holder.identify()
    requirePermission(grant, operations, resource)
    return grant
  }

  /** Does what one operation asks for, if it is permitted. */
  async run<Result>(
    operation: Operation,
    resource: Resource,
    work: (grant: Grant) => Promise<Result>,
  ): Promise<Result> {
    const grant = await this.permit(operation, resource)
    return work(grant)
  }
}

/** Throws 403 `permission_denied` unless the grant permits at least one of the operations on the resource. */
export function requirePermission(
  grant: Grant,
  operations: Operation | readonly Operation[],
  resource: Resource,
): void {
  const { stream } = resource
  const meant = stream === undefined ? resource : { ...resource, stream: grant.streamPrefix + stream }
  const asked = typeof operations === 'string' ? [operations] : operations
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
  const stream = grant.streamPrefix + ref.stream
  checkPrefixed(stream, 'name', 'stream')
  return { basin: ref.basin, stream, shownAs: ref.stream }
}

export function checkPrefixed(text: string, role: NameRole, field: string): void {
  if (utf8Length(text) > STREAM_NAME_BYTES_MAX) {
    throw invalid(
      `stream ${role} must not exceed ${STREAM_NAME_BYTES_MAX} bytes in length together with the prefix of the access token`,
      field,
    )
  }
}
