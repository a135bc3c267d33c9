/** 32 bytes, or the same in padded base64 (44 characters). */
export type EncryptionKeyInput = string | Uint8Array

/**
 * An encryption key as the caller passed it. It is validated when a stream needs it; a plain stream ignores
 * it. Separate from `EncryptionKey`, which loads with the ciphers. The key material is private, so that logs
 * and errors cannot reveal it.
 */
export class RedactedKey {
  /** Undefined if the value is not a key. */
  readonly #given: EncryptionKeyInput | undefined
  #key: object | undefined

  constructor(given: EncryptionKeyInput) {
    if (typeof given === 'string') this.#given = given
    // A copy: the caller may wipe its own. Of nothing else: of a number it would be a key of zeros.
    // Not of an empty array either: its buffer may have been transferred, and copying it would throw.
    else if (given instanceof Uint8Array) this.#given = new Uint8Array(given.length > 0 ? given : [])
  }

  /** Returns whether both were given the same key, or none. */
  static equal(one: RedactedKey | undefined, other: RedactedKey | undefined): boolean {
    return one === other || (!!one && !!other && String(one.#given) === String(other.#given))
  }

  /** The validated key, made once: ciphers cache derived keys by this object. */
  key<Key extends object>(make: (given: EncryptionKeyInput | undefined) => Key): Key {
    this.#key ??= make(this.#given)
    return this.#key as Key
  }
}
