import type { Cipher } from '../../model/config.ts'
import type { EncryptionKey } from '../../model/encryption-key.ts'
import type { MaybePromise } from '../../runtime/maybe-promise.ts'

/**
 * An authenticated cipher for the records of encrypted streams. Results may be returned without a promise,
 * which makes appends as fast as on a plain stream. Anything derived from a key may be kept only as long as
 * the `EncryptionKey` object lives, in a `WeakMap` for example.
 *
 * ```ts
 * // On a library that the app has already.
 * const suite: CipherSuite = {
 *   name: 'aes-256-gcm',
 *   missing: aes.isSupported ? undefined : 'the instructions of the processor',
 *   seal: (key, nonce, plaintext, data) => aes.encrypt(key.bytes, nonce, plaintext, data),
 *   open: (key, nonce, ciphertext, data) => aes.decrypt(key.bytes, nonce, ciphertext, data),
 * }
 * ```
 */
export interface CipherSuite {
  /** The cipher that it implements. */
  readonly name: Cipher
  /**
   * Why the cipher is not available, on a stand-in for one that could not be loaded. Operations that need the
   * cipher reject with this text (`invalid`), and no method is called.
   */
  readonly missing?: string | undefined
  /**
   * Returns the ciphertext followed by the tag (`aes-256-gcm` 16 bytes, `aegis-256` 32). The nonce is unique
   * to the call (12 bytes, 32).
   */
  seal(
    key: EncryptionKey,
    nonce: Uint8Array,
    plaintext: Uint8Array,
    associatedData: Uint8Array,
  ): MaybePromise<Uint8Array>
  /**
   * Returns the plaintext in a buffer of its own, or undefined if key, nonce, ciphertext and associated data
   * do not belong together.
   */
  open(
    key: EncryptionKey,
    nonce: Uint8Array,
    ciphertext: Uint8Array,
    associatedData: Uint8Array,
  ): MaybePromise<Uint8Array | undefined>
}
