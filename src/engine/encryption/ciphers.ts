import type { Cipher } from '../../model/config.ts'
import { invalid } from '../../model/errors.ts'
import { LazyModule } from '../../runtime/lazy-module.ts'
import type { StreamDocument } from '../../storage/documents.ts'
import { PLAIN, type RecordCodec } from '../log/record-codec.ts'
import { assertCipher } from './cipher-availability.ts'
import type { CipherSuite } from './cipher-suite.ts'

const NAMES: readonly Cipher[] = ['aegis-256', 'aes-256-gcm']

/** The ciphers of an engine: those it was opened with, and AES-256-GCM where the runtime has it. */
export class Ciphers {
  readonly #suites = new Map<Cipher, CipherSuite>()
  readonly #codecs = new LazyModule('the code of the ciphers', () => import('./stream-codec.ts'))

  /** Throws `invalid` for a suite with an unknown name and for two with the same name. */
  constructor(suites: readonly CipherSuite[]) {
    for (const suite of suites) {
      if (!NAMES.includes(suite.name)) {
        throw invalid(`ciphers must be named ${NAMES.join(' or ')}, not ${suite.name}`, 'ciphers')
      }
      if (this.#suites.has(suite.name)) throw invalid(`ciphers must not have ${suite.name} twice`, 'ciphers')
      this.#suites.set(suite.name, suite)
    }
  }

  /** Throws `invalid` if a cipher is missing: records are never stored in plain text instead. */
  check(cipher: Cipher): void {
    assertCipher(cipher, this.#suites.get(cipher))
  }

  /**
   * Returns the codec for the records of a stream. Loads code for the first encrypted one: rejects with
   * `unavailable` if it cannot be loaded, and the next call tries again. If the cipher is missing, the codec
   * rejects every use.
   */
  async codecFor(document: StreamDocument): Promise<RecordCodec> {
    const { cipher } = document
    if (cipher === null) return PLAIN
    const { streamCodec } = await this.#codecs.load()
    return streamCodec(document, cipher, this.#suites.get(cipher))
  }
}
