import type { Cipher } from '../../model/config.ts'
import type { EncryptionKey } from '../../model/encryption-key.ts'
import { HeadwaterError } from '../../model/errors.ts'
import { SEALED_FORMATS, type Sealed } from '../../storage/sealed-block.ts'
import { type CipherSuite, isPromise, type MaybePromise, whenThere } from './cipher-suite.ts'

/** A cipher suite bound to the associated data of a stream. It is not trusted to keep to its contract: what it gives is measured. */
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
    // Never from a seeded source: a nonce that comes twice under one key gives the records away.
    const nonce = globalThis.crypto.getRandomValues(new Uint8Array(nonceBytes))
    const ciphertext = told('sealed', () => this.#suite.seal(key, nonce, plaintext, this.#associatedData))
    return whenThere(ciphertext, (there) => {
      if (!isBytes(there, plaintext.length + tagBytes)) throw failed('sealed', NOT_THE_BYTES)
      return next({ nonce, ciphertext: there })
    })
  }

  /** The plaintext. Fails with 400 `decryption_failed` (wire-behaviour.md 10.4). */
  open(key: EncryptionKey, { nonce, ciphertext }: Sealed): MaybePromise<Uint8Array> {
    const { tagBytes } = SEALED_FORMATS[this.cipher]
    const plaintext = told('opened', () => this.#suite.open(key, nonce, ciphertext, this.#associatedData))
    return whenThere(plaintext, (there) => {
      if (there === undefined) throw new HeadwaterError('decryption_failed', 'record decryption failed')
      if (!isBytes(there, ciphertext.length - tagBytes)) throw failed('opened', NOT_THE_BYTES)
      return there
    })
  }
}

/** Tells a failure of the suite as one of headwater. */
function told<Value>(done: 'sealed' | 'opened', work: () => MaybePromise<Value>): MaybePromise<Value> {
  try {
    const value = work()
    if (!isPromise(value)) return value
    return value.catch((cause: unknown) => {
      throw failed(done, cause)
    })
  } catch (cause) {
    throw failed(done, cause)
  }
}

const NOT_THE_BYTES = 'it gave something else than bytes of the right length'

function isBytes(value: unknown, length: number): boolean {
  return value instanceof Uint8Array && value.length === length
}

/** Nothing was handed to the storage yet when sealing fails; opening changes nothing. */
function failed(done: 'sealed' | 'opened', cause: unknown): HeadwaterError {
  return new HeadwaterError('other', `records could not be ${done}: the cipher failed`, {
    mayHaveEffects: false,
    cause,
  })
}
