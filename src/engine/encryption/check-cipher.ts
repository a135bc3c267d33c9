import type { Cipher } from '../../model/config.ts'
import { type HeadwaterError, invalid } from '../../model/errors.ts'
import { nodeCrypto } from '../node-crypto.ts'
import type { GivenSuites } from './ciphers.ts'

/** Throws 422 `invalid` where the cipher is missing: records are never stored in plain text instead (rulings.md "Encryption"). */
export function checkCipher(cipher: Cipher, given: GivenSuites): void {
  const suite = given.get(cipher)
  if (suite?.missing !== undefined) throw missing(cipher, suite.missing)
  if (suite !== undefined) return
  if (cipher === 'aegis-256') {
    throw missing(cipher, 'it needs open({ ciphers: [await aegis256()] }), from headwater/aegis-256')
  }
  if (nodeCrypto() === undefined && globalThis.crypto?.subtle === undefined) {
    throw missing(cipher, 'WebCrypto is missing, which browsers have on secure pages only (https, localhost)')
  }
}

function missing(cipher: Cipher, remedy: string): HeadwaterError {
  return invalid(`stream_cipher ${cipher} is not available: ${remedy}`, 'stream_cipher')
}
