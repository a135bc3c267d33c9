import type { RetentionPolicy, StreamConfigInput } from '../../model/config.ts'
import type { RedactedKey } from '../../model/encryption-key.ts'
import type { StreamRef } from '../../model/names.ts'

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
