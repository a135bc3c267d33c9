import type { Cipher } from '../../model/config.ts'
import type { EncryptionKey } from '../../model/encryption-key.ts'

export type MaybePromise<Value> = Value | Promise<Value>

/**
 * An authenticated cipher for the records of encrypted streams. Answers at once where it can: an append then waits for nothing more than
 * on a plain stream. It may keep what it derives from a key only for as long as the `EncryptionKey` object lives.
 */
export interface CipherSuite {
  readonly name: Cipher
  /** Of a stand-in for a suite that could not be had: why. Who asks for the cipher is told so, with 422 `invalid`; it is called for nothing. */
  readonly missing?: string | undefined
  /** The ciphertext with the tag at its end (`aes-256-gcm` 16 bytes, `aegis-256` 32). The nonce is new each time (12 bytes, 32). */
  seal(
    key: EncryptionKey,
    nonce: Uint8Array,
    plaintext: Uint8Array,
    associatedData: Uint8Array,
  ): MaybePromise<Uint8Array>
  /** The plaintext, in memory of its own; undefined when key, nonce, ciphertext and associated data do not belong together. */
  open(
    key: EncryptionKey,
    nonce: Uint8Array,
    ciphertext: Uint8Array,
    associatedData: Uint8Array,
  ): MaybePromise<Uint8Array | undefined>
}

/** Goes on with the value: at once, unless it is still to come. */
export function whenThere<Value, Result>(
  value: MaybePromise<Value>,
  next: (value: Value) => Result,
): MaybePromise<Result> {
  return isPromise(value) ? value.then(next) : next(value)
}

/** Also of one from another realm, which is no `Promise` here. */
export function isPromise<Value>(value: MaybePromise<Value>): value is Promise<Value> {
  return typeof (value as Partial<Promise<Value>> | undefined)?.then === 'function'
}
