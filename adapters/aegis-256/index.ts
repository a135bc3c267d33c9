import type { CipherSuite } from '../../src/index.ts'
import { HeadwaterError } from '../../src/model/errors.ts'

/**
 * The cipher `aegis-256`, by libsodium (the peer dependency `libsodium-wrappers`, WebAssembly), for `open({ ciphers: [await aegis256()] })`.
 * Ready when it resolves: from then on it answers at once. Rejects with `unavailable` where a page
 * permits no WebAssembly.
 */
export async function aegis256(): Promise<CipherSuite> {
  requireWebAssembly()
  const { default: sodium } = await import('libsodium-wrappers')
  await sodium.ready
  return {
    name: 'aegis-256',
    seal(key, nonce, plaintext, associatedData) {
      return sodium.crypto_aead_aegis256_encrypt(plaintext, associatedData, null, nonce, key.bytes)
    },
    open(key, nonce, ciphertext, associatedData) {
      try {
        return sodium.crypto_aead_aegis256_decrypt(null, ciphertext, associatedData, nonce, key.bytes)
      } catch (error) {
        if ((error as Error).message === REFUSED) return undefined
        throw error
      }
    },
  }
}

/** libsodium begins to compile when it is imported, and what keeps it from that is then an error that nobody handles. */
function requireWebAssembly(): void {
  try {
    new WebAssembly.Module(Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0))
  } catch (cause) {
    throw new HeadwaterError('unavailable', 'aegis-256 needs WebAssembly, which this page does not permit', {
      cause,
    })
  }
}

/** What libsodium says when the tag is another: it has one class of errors for everything. */
const REFUSED = 'ciphertext cannot be decrypted using that key'
