import type { Cipher } from '../../model/config.ts'
import { type HeadwaterError, invalid } from '../../model/errors.ts'
import { nodeCrypto } from '../../runtime/node.ts'
import type { StreamDocument } from '../../storage/documents.ts'
import { PLAIN, type RecordCodec } from '../log/record-codec.ts'
import type { CipherSuite } from './cipher-suite.ts'
import { streamCodec } from './stream-codec.ts'

const NAMES: readonly Cipher[] = ['aegis-256', 'aes-256-gcm']

/** The ciphers of an engine: those it was opened with, and AES-256-GCM where the runtime has it. */
export class Ciphers {
  readonly #suites = new Map<Cipher, CipherSuite>()

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
    const problem = this.#problem(cipher)
    if (problem !== undefined) throw missingCipher(cipher, problem)
  }

  /** Returns the codec for the records of a stream. If the cipher is missing, the codec rejects every use. */
  codecFor(document: StreamDocument): RecordCodec {
    const { cipher } = document
    if (cipher === null) return PLAIN
    const problem = this.#problem(cipher)
    if (problem !== undefined) return missingCodec(cipher, problem)
    return streamCodec(document, this.#suites.get(cipher))
  }

  #problem(cipher: Cipher): string | undefined {
    const suite = this.#suites.get(cipher)
    if (suite !== undefined) return suite.missing
    if (cipher === 'aegis-256') {
      return 'it needs open({ ciphers: [await aegis256()] }), from headwater/aegis-256'
    }
    if (nodeCrypto() === undefined && globalThis.crypto?.subtle === undefined) {
      return 'WebCrypto is missing, which browsers have on secure pages only (https, localhost)'
    }
    return undefined
  }
}

/** The codec of a stream whose cipher is missing. Its tail can be checked, and it can be deleted. */
function missingCodec(cipher: Cipher, problem: string): RecordCodec {
  const fail = (): never => {
    throw missingCipher(cipher, problem)
  }
  return { pending: 0, checkKey: fail, append: fail, reader: fail, split: fail }
}

function missingCipher(cipher: Cipher, problem: string): HeadwaterError {
  return invalid(`\`streamCipher\` ${cipher} is not available: ${problem}`, 'streamCipher')
}
