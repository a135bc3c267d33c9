import sodium from 'libsodium-wrappers'
import type { CipherSuite } from '../../src/index.ts'

/**
 * The cipher `aegis-256`, by libsodium (the peer dependency `libsodium-wrappers`, WebAssembly), for `open({ ciphers: [await aegis256()] })`.
 * Ready when it resolves: from then on it answers at once. Rejects where WebAssembly is not allowed.
 */
export async function aegis256(): Promise<CipherSuite> {
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

/** What libsodium says when the tag is another: it has one class of errors for everything. */
const REFUSED = 'ciphertext cannot be decrypted using that key'
