import type { Cipher, StreamConfigInput } from './config.ts'
import type { StreamCreation, StreamMetadata } from './stream-creation.ts'
import { type MembersOf, type Time, unchecked } from './validation.ts'

/** A stream that continues another one whose records before `start` are gone. */
export interface RestoredStream {
  /** Settings over the basin's defaults. None by default. */
  readonly config?: StreamConfigInput | undefined
  /**
   * The sequence number of its next record, and the lowest timestamp that a record may get, in milliseconds.
   */
  readonly start: { readonly seqNum: number; readonly timestamp: Time }
  /** The fencing token, at most 36 bytes. `''`, the default, sets none. */
  readonly fencingToken?: string | undefined
  /** `null` stores plain text. By default the cipher of the basin's configuration applies. */
  readonly cipher?: Cipher | null | undefined
  /** The texts of {@link StreamCreation}. None by default. */
  readonly metadata?: StreamMetadata | undefined
  /** The end as in {@link StreamCreation}; idle seconds begin with the restoration. Never by default. */
  readonly expiry?: StreamCreation['expiry'] | undefined
}

/** The members of {@link RestoredStream}, which are validated where they are used. */
export const RESTORED_STREAM: MembersOf<RestoredStream> = {
  config: unchecked,
  start: { seqNum: unchecked, timestamp: unchecked },
  fencingToken: unchecked,
  cipher: unchecked,
  metadata: unchecked,
  expiry: unchecked,
}
