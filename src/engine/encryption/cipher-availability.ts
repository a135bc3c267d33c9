import type { Cipher } from '../../model/config.ts'
import { type HeadwaterError, invalid } from '../../model/errors.ts'
import { nodeCrypto } from '../../runtime/node.ts'
import type { RecordCodec } from '../log/record-codec.ts'
import type { CipherSuite } from './cipher-suite.ts'

/** Describes what a cipher lacks; undefined if it is available. */
export function cipherProblem(cipher: Cipher, suite: CipherSuite | undefined): string | undefined {
  if (suite !== undefined) return suite.missing
  if (cipher === 'aegis-256') {
    return 'it needs open({ ciphers: [await aegis256()] }), from headwater/aegis-256'
  }
  if (nodeCrypto() === undefined && globalThis.crypto?.subtle === undefined) {
    return 'WebCrypto is missing, which browsers have on secure pages only (https, localhost)'
  }
  return undefined
}

/** Throws `invalid` if a cipher is missing. */
export function assertCipher(cipher: Cipher, suite: CipherSuite | undefined): void {
  const problem = cipherProblem(cipher, suite)
  if (problem !== undefined) throw missingCipher(cipher, problem)
}

/** The codec of a stream whose cipher is missing. Its tail can be checked, and it can be deleted. */
export function missingCodec(cipher: Cipher, problem: string): RecordCodec {
  const fail = (): never => {
    throw missingCipher(cipher, problem)
  }
  return {
    pending: 0,
    checkKey: fail,
    append: (_batch, _key, listener) => listener.failed(missingCipher(cipher, problem)),
    reader: fail,
    split: fail,
    async close() {},
  }
}

function missingCipher(cipher: Cipher, problem: string): HeadwaterError {
  return invalid(`\`streamCipher\` ${cipher} is not available: ${problem}`, 'streamCipher')
}
