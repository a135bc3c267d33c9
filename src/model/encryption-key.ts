import { decodeBase64, encodeBase64 } from './bytes.ts'
import type { Cipher } from './config.ts'
import { HeadwaterError } from './errors.ts'

/** Both ciphers take keys of this length. */
const ENCRYPTION_KEY_BYTES = 32
/** The length of 32 bytes in padded base64. */
export const KEY_CHARACTERS_MAX = 44

/** 32 bytes, or the same in padded base64 (44 characters). */
export type EncryptionKeyInput = string | Uint8Array

/**
 * The key of an encrypted stream as the caller passed it (docs/protocol.md "Encryption keys"). It is
 * validated when a stream needs it; a plain stream ignores it. The key material is private, so that logs and
 * errors cannot reveal it. Ciphers may cache what they derive from it by this object.
 */
export class EncryptionKey {
  /** Undefined if the value is not a key. */
  readonly #given: EncryptionKeyInput | undefined
  #bytes: Uint8Array | undefined

  constructor(given: EncryptionKeyInput) {
    if (typeof given === 'string') this.#given = given
    // A copy: the caller may wipe its own. Of nothing else: of a number it would be a key of zeros.
    // Not of an empty array either: its buffer may have been transferred, and copying it would throw.
    else if (given instanceof Uint8Array) this.#given = new Uint8Array(given.length > 0 ? given : [])
  }

  /** Returns whether both were given the same key, or none. */
  static equal(one: EncryptionKey | undefined, other: EncryptionKey | undefined): boolean {
    return one === other || (!!one && !!other && String(one.#given) === String(other.#given))
  }

  /** The 32 bytes. Throws `encryption_key_invalid` if the key is neither that many bytes nor their base64. */
  get bytes(): Uint8Array {
    this.#bytes ??= keyBytes(this.#given)
    return this.#bytes
  }

  /** The text of a header with the key; undefined for a malformed one, as if none was given. */
  headerText(): string | undefined {
    const given = this.#given
    // A key that is too long becomes a text that is too long.
    const text =
      given instanceof Uint8Array ? encodeBase64(given.subarray(0, KEY_CHARACTERS_MAX)) : given?.trim()
    return text !== undefined && /^[A-Za-z0-9+/=]{1,44}$/.test(text) ? text : undefined
  }
}

/** The key of a stream with this cipher. Throws `encryption_key_invalid` if it is missing or malformed. */
export function requiredKey(key: EncryptionKey | undefined, cipher: Cipher): EncryptionKey {
  if (key === undefined) throw badKey(`missing encryption key for stream cipher '${cipher}'`)
  // Throws for a malformed one.
  void key.bytes
  return key
}

function keyBytes(given: EncryptionKeyInput | undefined): Uint8Array {
  if (given === undefined) throw badKey('invalid encryption key: neither base64 nor a Uint8Array')
  const bytes = typeof given === 'string' ? base64Bytes(given.trim()) : given
  if (bytes.length === ENCRYPTION_KEY_BYTES) return bytes
  throw badKey(
    `invalid encryption key length: ${bytes.length} bytes, must be ${ENCRYPTION_KEY_BYTES} in base64`,
  )
}

function base64Bytes(text: string): Uint8Array {
  if (text.length < 1 || text.length > KEY_CHARACTERS_MAX) {
    throw badKey(`invalid encryption key: key material length ${text.length} is out of range`)
  }
  const bytes = decodeBase64(text)
  if (bytes === undefined) throw badKey('invalid encryption key: invalid base64')
  return bytes
}

function badKey(message: string): HeadwaterError {
  return new HeadwaterError('encryption_key_invalid', message, { field: 'encryptionKey' })
}
