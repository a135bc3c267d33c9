/**
 * The cipher AEGIS-256 for encrypted streams.
 *
 * @packageDocumentation
 */

import type { CipherSuite } from '../../src/index.ts'
import { HeadwaterError } from '../../src/model/errors.ts'

/** The message of libsodium for a wrong tag. It has one error class for everything. */
const WRONG_TAG = 'ciphertext cannot be decrypted using that key'

/**
 * Loads the cipher `aegis-256` for `open({ ciphers: [await aegis256()] })`. It is implemented by libsodium in
 * WebAssembly (the peer dependency `libsodium-wrappers`).
 *
 * ```ts
 * const hw = await open({ storage: memory(), ciphers: [await aegis256()] })
 * ```
 *
 * Rejects with `unsupported` in a page that does not permit WebAssembly, and with the error of `import()` if
 * `libsodium-wrappers` is not installed.
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
        if ((error as Error).message === WRONG_TAG) return undefined
        throw error
      }
    },
  }
}

/** libsodium compiles on import, and a failure there would be an unhandled rejection. */
function requireWebAssembly(): void {
  try {
    new WebAssembly.Module(Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0))
  } catch (cause) {
    throw new HeadwaterError('unsupported', 'aegis-256 needs WebAssembly, which this page does not permit', {
      cause,
    })
  }
}
