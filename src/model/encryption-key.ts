import type { Cipher } from './config.ts'
import { HeadwaterError } from './errors.ts'

/** 32 bytes, or the same in padded base64 (44 characters). */
export type EncryptionKeyInput = string | Uint8Array

/** Both ciphers take keys of this length. */
const ENCRYPTION_KEY_BYTES = 32
/** Of 32 bytes in padded base64. */
export const KEY_CHARACTERS_MAX = 44
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

/**
 * A caller's key for the records of an encrypted stream (wire-behaviour.md 10.2). What was given is looked at only when a stream needs it:
 * a plain stream ignores its key. The material is private, so that neither a log nor an error can show it.
 */
export class EncryptionKey {
  readonly #given: EncryptionKeyInput
  #bytes: Uint8Array | undefined

  constructor(given: EncryptionKeyInput) {
    // A copy: the caller may wipe its own.
    this.#given = typeof given === 'string' ? given : new Uint8Array(given)
  }

  /** The 32 bytes. Throws 400 `bad_header` when it is no base64 or has another length. */
  get bytes(): Uint8Array {
    this.#bytes ??= keyBytes(this.#given)
    return this.#bytes
  }
}

/** The key to use on a stream with this cipher. Throws 400 `bad_header` when it is missing or malformed. */
export function requiredKey(key: EncryptionKey | undefined, cipher: Cipher): EncryptionKey {
  if (key === undefined) throw badKey(`missing encryption key for stream cipher '${cipher}'`)
  // Malformed keys are told before anything is done with the stream.
  void key.bytes
  return key
}

function keyBytes(given: EncryptionKeyInput): Uint8Array {
  const bytes = typeof given === 'string' ? base64Bytes(given.trim()) : given
  if (bytes.length !== ENCRYPTION_KEY_BYTES) {
    throw badKey(
      `invalid encryption key length: ${bytes.length} bytes, must be ${ENCRYPTION_KEY_BYTES} in base64`,
    )
  }
  return bytes
}

function base64Bytes(text: string): Uint8Array {
  if (text.length < 1 || text.length > KEY_CHARACTERS_MAX) {
    throw badKey(`invalid encryption key: key material length ${text.length} is out of range`)
  }
  if (!BASE64.test(text)) throw badKey('invalid encryption key: invalid base64')
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0))
}

function badKey(message: string): HeadwaterError {
  return new HeadwaterError('bad_header', message, { field: 'encryption-key' })
}
