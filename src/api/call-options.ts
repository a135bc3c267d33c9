import { assertStreamConfig, type StreamConfigInput } from '../model/config.ts'
import type { EncryptionKeyInput } from '../model/encryption-key.ts'
import { assertMembers, assertSignal, type Members, type MembersOf, unchecked } from '../model/validation.ts'

/** Options of a call. */
export interface CallOptions {
  /** Rejects the call with the signal's reason. A change that is under way may still take effect. */
  readonly signal?: AbortSignal | undefined
}

export const CALL_OPTIONS: MembersOf<CallOptions> = { signal: assertSignal }

/** Validates the options of a call and returns its signal. Throws `invalid`. */
export function signalOf(
  options: CallOptions | undefined,
  members: Members = CALL_OPTIONS,
): AbortSignal | undefined {
  if (options === undefined) return undefined
  assertMembers(options, members, 'options')
  return options.signal
}

/** Options of a stream handle. */
export interface StreamOptions {
  /** The configuration of the stream if its first use creates it. */
  readonly config?: StreamConfigInput | undefined
  /**
   * The key for the records of a stream with a cipher: 32 bytes, or their base64. It is never stored. Without
   * a valid key, appends and reads reject with `encryption_key_invalid`; with the wrong key, reads reject
   * with `decryption_failed`. Plain streams ignore it.
   */
  readonly encryptionKey?: EncryptionKeyInput | undefined
}

/** Options of a handle of another stream in the same basin. */
export interface SiblingOptions {
  /** The configuration of the stream if its first use creates it. */
  readonly config?: StreamConfigInput | undefined
  /** Whether a first append creates it, whatever its basin says. By default as with the first handle. */
  readonly autoCreate?: boolean | undefined
}

export const STREAM_OPTIONS: MembersOf<StreamOptions> = {
  config: (value) => assertStreamConfig(value as StreamConfigInput),
  // Checked when an encrypted stream needs it: `encryption_key_invalid`.
  encryptionKey: unchecked,
}
