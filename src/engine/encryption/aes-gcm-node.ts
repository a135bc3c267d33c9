import { concatBytes } from '../../model/bytes.ts'
import type { NodeCrypto } from '../node-crypto.ts'
import type { CipherSuite } from './cipher-suite.ts'

const TAG_BYTES = 16

/** AES-256-GCM by `node:crypto`, which answers at once. */
export function aesGcmOfNode(crypto: NodeCrypto): CipherSuite {
  return {
    name: 'aes-256-gcm',
    seal(key, nonce, plaintext, associatedData) {
      const cipher = crypto.createCipheriv('aes-256-gcm', key.bytes, nonce)
      cipher.setAAD(associatedData)
      const ciphertext = cipher.update(plaintext)
      return concatBytes([ciphertext, cipher.final(), cipher.getAuthTag()])
    },
    open(key, nonce, ciphertext, associatedData) {
      const options = { authTagLength: TAG_BYTES }
      const decipher = crypto.createDecipheriv('aes-256-gcm', key.bytes, nonce, options)
      const end = ciphertext.length - TAG_BYTES
      decipher.setAAD(associatedData)
      decipher.setAuthTag(ciphertext.subarray(end))
      const { buffer, byteOffset, byteLength } = decipher.update(ciphertext.subarray(0, end))
      try {
        decipher.final()
      } catch {
        return undefined
      }
      // Buffers look like `Uint8Array`s, but for a `slice` that does not copy.
      return new Uint8Array(buffer, byteOffset, byteLength)
    },
  }
}
