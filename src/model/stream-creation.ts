import type { RecordInput } from './append-input.ts'
import type { EncryptionKeyInput } from './redacted-key.ts'
import { type MembersOf, type Time, unchecked } from './validation.ts'

/** Texts that an application keeps with a stream, such as the type of its content. They never change. */
export type StreamMetadata = Readonly<Record<string, string>>

/** The end of a stream, whatever it holds: it is deleted. It never changes. */
export type StreamExpiry =
  /** The time of the deletion. */
  | { readonly at: Date }
  /** The seconds without an append or a read after which it is deleted: see {@link StreamCreation}. */
  | { readonly idleSeconds: number }

/** How a new stream begins, besides its configuration. */
export interface StreamCreation {
  /**
   * Texts that are stored with the stream and listed with it: at most 16, and 2 KiB of UTF-8 with their
   * names. None by default.
   */
  readonly metadata?: StreamMetadata | undefined
  /**
   * The time at which the stream is deleted, or the idle seconds after which it is. Appends and new reads
   * restart the idle time; tail checks do not. Not every read is recorded, so an idle stream may be deleted
   * later, by a tenth of the idle time and at most a minute. By default, the stream never expires.
   */
  readonly expiry?: { readonly at: Time } | { readonly idleSeconds: number } | undefined
  /**
   * Begins the stream with a copy of the records of another stream in the basin: those below `seqNum`, or
   * all. They keep their sequence numbers and timestamps. If the other stream is deleted first, its name
   * stays reserved until its forks are deleted.
   */
  readonly fork?: { readonly stream: string; readonly seqNum?: number | undefined } | undefined
  /** The first records, after those of the fork: a batch that is stored with the stream or not at all. */
  readonly records?: readonly RecordInput[] | undefined
  /**
   * The key of `records` and of the records of a fork, which are decrypted, and encrypted again for the new
   * stream. Required if either stream is encrypted, and ignored otherwise.
   */
  readonly encryptionKey?: EncryptionKeyInput | undefined
}

/** The members of {@link StreamCreation}, which are validated where they are used. */
export const STREAM_CREATION: MembersOf<StreamCreation> = {
  metadata: unchecked,
  expiry: unchecked,
  fork: unchecked,
  records: unchecked,
  encryptionKey: unchecked,
}
