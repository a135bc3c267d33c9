import type { EncryptionKey, EncryptionKeyInput } from './encryption-key.ts'

/**
 * A key as a caller gave it. It is looked at only when a stream needs it: a plain stream ignores its key. The material is private, so that neither a log
 * nor an error can show it.
 */
export class GivenKey {
  /** Undefined for what is no key at all. */
  readonly #given: EncryptionKeyInput | undefined
  #key: EncryptionKey | undefined

  constructor(given: EncryptionKeyInput) {
    if (typeof given === 'string') this.#given = given
    // A copy: the caller may wipe its own. Of nothing else: of a number it would be a key of zeros.
    else if (given instanceof Uint8Array) this.#given = new Uint8Array(given)
  }

  /** The key that it is, made once: ciphers keep what they derive from a key by this object. */
  key(make: (given: EncryptionKeyInput | undefined) => EncryptionKey): EncryptionKey {
    this.#key ??= make(this.#given)
    return this.#key
  }
}
