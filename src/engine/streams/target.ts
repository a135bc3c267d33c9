import type { RetentionPolicy, StreamConfigInput } from '../../model/config.ts'
import type { RedactedKey } from '../../model/encryption-key.ts'
import type { StreamRef } from '../../model/names.ts'
import { streamNotFound } from '../errors.ts'

/**
 * Identifies a connection in the usage metrics, which count appends by connection: any object, compared by
 * identity.
 */
export type UsageConnection = object

/** A stream, and how a caller uses its records. */
export interface StreamTarget {
  readonly ref: StreamRef
  readonly creation: CreationPolicy
  /** The key for streams with a cipher; plain streams ignore it. */
  readonly key: RedactedKey | undefined
  readonly connection: UsageConnection
  readonly identity?: ExpectedIdentity | undefined
}

/** Tells a stream from those that had its name before, or will have it. */
export interface ExpectedIdentity {
  /** The identity that the stream must have; another stream of the name is not found. Undefined for any. */
  readonly id: string | undefined
  /** Receives the identity of the stream that is used, whatever becomes of the call. */
  readonly onResolved: (id: string) => void
}

/** Throws `stream_not_found` if the stream that has the name of the target is another one. */
export function assertIsTarget(target: Pick<StreamTarget, 'ref' | 'identity'>, logId: string): void {
  const { ref, identity } = target
  if (identity === undefined) return
  if (identity.id !== undefined && identity.id !== logId) throw streamNotFound(ref)
  identity.onResolved(logId)
}

/** The policy for a data operation whose stream does not exist (docs/protocol.md "Automatic creation"). */
export interface CreationPolicy {
  /** Creates the stream, and its basin, whatever the basin's configuration says. */
  readonly always: boolean
  /** Rejects with `stream_not_found`, also while another call creates the stream. */
  readonly never?: boolean | undefined
  /** Configuration of a stream that is created. */
  readonly config?: StreamConfigInput | undefined
  /** The retention of a basin or stream for which nothing else sets one. The protocol's by default. */
  readonly defaultRetention?: RetentionPolicy | undefined
  /** Rejects the creation with `permission_denied`: the caller may not choose the configuration it gave. */
  readonly isConfigDenied?: boolean | undefined
}
