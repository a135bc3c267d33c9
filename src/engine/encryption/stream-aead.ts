import type { Cipher } from '../../model/config.ts'
import type { EncryptionKey } from '../../model/encryption-key.ts'
import { HeadwaterError } from '../../model/errors.ts'
import { andThen, isPromise, type MaybePromise } from '../../runtime/maybe-promise.ts'
import { SEALED_FORMATS, type Sealed } from '../../storage/sealed-block.ts'
import type { CipherSuite } from './cipher-suite.ts'

/**
 * A cipher suite bound to the associated data of a stream. Checks that results have the right type and
 * length.
 */
export class StreamAead {
  readonly #suite: CipherSuite
  readonly #associatedData: Uint8Array

  constructor(suite: CipherSuite, associatedData: Uint8Array) {
    this.#suite = suite
    this.#associatedData = associatedData
  }

  get cipher(): Cipher {
    return this.#suite.name
  }

  seal<Result>(
    key: EncryptionKey,
    plaintext: Uint8Array,
    next: (sealed: Sealed) => Result,
  ): MaybePromise<Result> {
    const { nonceBytes, tagBytes } = SEALED_FORMATS[this.cipher]
    // Never from a seeded source: a nonce used twice under one key reveals the records.
    const nonce = globalThis.crypto.getRandomValues(new Uint8Array(nonceBytes))
    const sealing = mapFailures('sealed', () => this.#suite.seal(key, nonce, plaintext, this.#associatedData))
    return andThen(sealing, (ciphertext) => {
      if (!isBytes(ciphertext, plaintext.length + tagBytes)) throw cipherFailed('sealed', WRONG_RESULT)
      return next({ nonce, ciphertext })
    })
  }

  /** Returns the plaintext. Fails with `decryption_failed` (docs/protocol.md "Decryption errors"). */
  open(key: EncryptionKey, { nonce, ciphertext }: Sealed): MaybePromise<Uint8Array> {
    const { tagBytes } = SEALED_FORMATS[this.cipher]
    const opening = mapFailures('opened', () =>
      this.#suite.open(key, nonce, ciphertext, this.#associatedData),
    )
    return andThen(opening, (plaintext) => {
      if (plaintext === undefined) throw new HeadwaterError('decryption_failed', 'record decryption failed')
      if (!isBytes(plaintext, ciphertext.length - tagBytes)) throw cipherFailed('opened', WRONG_RESULT)
      return plaintext
    })
  }
}

/** Maps errors of the suite to errors of headwater. */
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

const WRONG_RESULT = 'the result is not a Uint8Array of the right length'

function isBytes(value: unknown, length: number): boolean {
  return value instanceof Uint8Array && value.length === length
}

/**
 * A failure without effects: records are sealed before the storage is called, and opening changes nothing.
 */
function cipherFailed(done: 'sealed' | 'opened', cause: unknown): HeadwaterError {
  return new HeadwaterError('other', `records could not be ${done}: the cipher failed`, {
    mayHaveEffects: false,
    cause,
  })
}
