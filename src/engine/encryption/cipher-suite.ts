import type { Cipher } from '../../model/config.ts'
import type { EncryptionKey } from '../../model/encryption-key.ts'
import { HeadwaterError } from '../../model/errors.ts'
import { andThen, isPromise, type MaybePromise } from '../../runtime/maybe-promise.ts'
import { SEALED_FORMATS, type Sealed } from '../../storage/sealed-block.ts'

/**
 * An authenticated cipher for the records of encrypted streams. Results may be returned without a promise,
 * which makes appends as fast as on a plain stream. A promise has to settle: closing an engine waits for
 * appends that are being encrypted. Anything derived from a key may be kept only as long as the
 * `EncryptionKey` object lives, in a `WeakMap` for example.
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

/** A cipher suite bound to the associated data of a stream. Suites are code of users: results are checked. */
export class StreamCipher {
  readonly #suite: CipherSuite
  readonly #associatedData: Uint8Array

  constructor(suite: CipherSuite, associatedData: Uint8Array) {
    this.#suite = suite
    this.#associatedData = associatedData
  }

  get name(): Cipher {
    return this.#suite.name
  }

  /** Fails with `other` if the suite does. */
  seal(key: EncryptionKey, plaintext: Uint8Array): MaybePromise<Sealed> {
    const { nonceBytes, tagBytes } = SEALED_FORMATS[this.name]
    // Never from a seeded source: a nonce used twice under one key reveals the records.
    const nonce = globalThis.crypto.getRandomValues(new Uint8Array(nonceBytes))
    const sealing = mapFailures('sealed', () => this.#suite.seal(key, nonce, plaintext, this.#associatedData))
    return andThen(sealing, (ciphertext) => {
      checkResult('sealed', ciphertext, plaintext.length + tagBytes)
      return { nonce, ciphertext }
    })
  }

  /** Fails with `decryption_failed` (docs/protocol.md "Decryption errors"), or `other` if the suite fails. */
  open(key: EncryptionKey, { nonce, ciphertext }: Sealed): MaybePromise<Uint8Array> {
    const { tagBytes } = SEALED_FORMATS[this.name]
    const opening = mapFailures('opened', () =>
      this.#suite.open(key, nonce, ciphertext, this.#associatedData),
    )
    return andThen(opening, (plaintext) => {
      if (plaintext === undefined) throw new HeadwaterError('decryption_failed', 'record decryption failed')
      checkResult('opened', plaintext, ciphertext.length - tagBytes)
      return plaintext
    })
  }
}

function mapFailures<Value>(done: 'sealed' | 'opened', work: () => MaybePromise<Value>): MaybePromise<Value> {
  try {
    const value = work()
    if (!isPromise(value)) return value
    return value.catch((cause: unknown) => {
      throw cipherFailed(done, cause)
    })
  } catch (cause) {
    throw cipherFailed(done, cause)
  }
}

function checkResult(done: 'sealed' | 'opened', result: unknown, length: number): void {
  if (result instanceof Uint8Array && result.length === length) return
  throw cipherFailed(done, 'the result is not a Uint8Array of the right length')
}

/** A failure without effects: records are sealed before they are stored, and opening changes nothing. */
function cipherFailed(done: 'sealed' | 'opened', cause: unknown): HeadwaterError {
  return new HeadwaterError('other', `records could not be ${done}: the cipher failed`, {
    mayHaveEffects: false,
    cause,
  })
}
