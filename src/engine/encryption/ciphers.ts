import type { Cipher } from '../../model/config.ts'
import type { StreamDocument } from '../documents.ts'
import { Late } from '../late.ts'
import type { CipherSuite } from './cipher-suite.ts'
import type { StreamCipher } from './stream-cipher.ts'

const NAMES: readonly Cipher[] = ['aegis-256', 'aes-256-gcm']

/** The suites that an engine was opened with. */
export type GivenSuites = ReadonlyMap<Cipher, CipherSuite>

/** The ciphers that this engine has: those it was given, and AES where the runtime has it. The code that uses them is loaded when a stream needs it. */
export class Ciphers {
  readonly given: GivenSuites
  readonly #code = new Late('the code of the ciphers', () => import('./stream-cipher.ts'))

  /** Throws `RangeError` for suites that make no sense. */
  constructor(given: readonly CipherSuite[]) {
    const suites = new Map<Cipher, CipherSuite>()
    for (const suite of given) {
      if (!NAMES.includes(suite.name)) {
        throw new RangeError(`ciphers must be named ${NAMES.join(' or ')}, not ${suite.name}`)
      }
      if (suites.has(suite.name)) throw new RangeError(`ciphers must not have ${suite.name} twice`)
      suites.set(suite.name, suite)
    }
    this.given = suites
  }

  get isLoaded(): boolean {
    return this.#code.part !== undefined
  }

  /** Rejects with `unavailable` when the code cannot be had; the next call tries again. */
  async load(closing: AbortSignal): Promise<void> {
    await this.#code.load(closing)
  }

  /** Once loaded. Throws 422 `invalid` where the cipher is missing. */
  ofStream(document: StreamDocument & { readonly cipher: Cipher }): StreamCipher {
    return this.#code.part!.streamCipher(document, this.given)
  }
}
