import type { Cipher } from '../../model/config.ts'
import { HeadwaterError, invalid } from '../../model/errors.ts'
import type { StreamDocument } from '../documents.ts'
import { nodeCrypto } from '../node-crypto.ts'
import type { CipherSuite } from './cipher-suite.ts'
import type { StreamCipher } from './stream-cipher.ts'

const NAMES: readonly Cipher[] = ['aegis-256', 'aes-256-gcm']

/** The ciphers that this engine has: those it was given, and AES where the runtime has it. The code that uses them is loaded when a stream needs it. */
export class Ciphers {
  readonly #given = new Map<Cipher, CipherSuite>()
  #code: typeof import('./stream-cipher.ts') | undefined

  /** Throws `RangeError` for suites that make no sense. */
  constructor(given: readonly CipherSuite[]) {
    for (const suite of given) {
      if (!NAMES.includes(suite.name)) {
        throw new RangeError(`ciphers must be named ${NAMES.join(' or ')}, not ${suite.name}`)
      }
      if (this.#given.has(suite.name)) throw new RangeError(`ciphers must not have ${suite.name} twice`)
      this.#given.set(suite.name, suite)
    }
  }

  /** Throws 422 `invalid` where the cipher is missing: records are never stored in plain text instead (rulings.md "Encryption"). */
  check(cipher: Cipher): void {
    const given = this.#given.get(cipher)
    if (given?.missing !== undefined) throw missing(cipher, given.missing)
    if (given !== undefined) return
    if (cipher === 'aegis-256') {
      throw missing(cipher, 'it needs open({ ciphers: [await aegis256()] }), from headwater/aegis-256')
    }
    if (nodeCrypto() === undefined && globalThis.crypto?.subtle === undefined) {
      throw missing(
        cipher,
        'WebCrypto is missing, which browsers have on secure pages only (https, localhost)',
      )
    }
  }

  get isLoaded(): boolean {
    return this.#code !== undefined
  }

  /** Rejects with `unavailable` when the code cannot be had; the next call tries again. */
  async load(): Promise<void> {
    try {
      this.#code ??= await import('./stream-cipher.ts')
    } catch (cause) {
      const message = 'the code of the ciphers could not be loaded'
      throw new HeadwaterError('unavailable', message, { mayHaveEffects: false, cause })
    }
  }

  /** Once loaded. Throws 422 `invalid` where the cipher is missing. */
  ofStream(document: StreamDocument & { readonly cipher: Cipher }): StreamCipher {
    const { cipher } = document
    this.check(cipher)
    const { aesGcm, StreamCipher } = this.#code!
    return new StreamCipher(this.#given.get(cipher) ?? aesGcm(), document)
  }
}

function missing(cipher: Cipher, remedy: string): HeadwaterError {
  return invalid(`stream_cipher ${cipher} is not available: ${remedy}`, 'stream_cipher')
}
