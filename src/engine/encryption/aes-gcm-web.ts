import type { EncryptionKey } from '../../model/encryption-key.ts'
import { unclocked } from '../../storage/unclocked.ts'
import type { CipherSuite } from './cipher-suite.ts'

type Bytes = Uint8Array<ArrayBuffer>

/** AES-256-GCM by WebCrypto, which answers later, and not always in the order of the calls. */
export function aesGcmOfWeb(subtle: SubtleCrypto): CipherSuite {
  const imported = new WeakMap<EncryptionKey, Promise<CryptoKey>>()

  function cryptoKey(key: EncryptionKey): Promise<CryptoKey> {
    let result = imported.get(key)
    if (result === undefined) {
      result = unclocked(
        subtle.importKey('raw', key.bytes as Bytes, 'AES-GCM', false, ['encrypt', 'decrypt']),
      )
      imported.set(key, result)
    }
    return result
  }

  return {
    name: 'aes-256-gcm',
    async seal(key, nonce, plaintext, associatedData) {
      const imports = await cryptoKey(key)
      const ciphertext = await unclocked(
        subtle.encrypt(algorithm(nonce, associatedData), imports, plaintext as Bytes),
      )
      return new Uint8Array(ciphertext)
    },
    async open(key, nonce, ciphertext, associatedData) {
      const imports = await cryptoKey(key)
      try {
        const plaintext = await unclocked(
          subtle.decrypt(algorithm(nonce, associatedData), imports, ciphertext as Bytes),
        )
        return new Uint8Array(plaintext)
      } catch (error) {
        if ((error as Error).name === 'OperationError') return undefined
        throw error
      }
    },
  }
}

function algorithm(nonce: Uint8Array, associatedData: Uint8Array): AesGcmParams {
  return { name: 'AES-GCM', iv: nonce as Bytes, additionalData: associatedData as Bytes, tagLength: 128 }
}
