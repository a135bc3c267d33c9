import type { EncryptionKey } from '../../model/encryption-key.ts'
import { trackExternalWork } from '../../runtime/clock.ts'
import { type NodeCrypto, nodeCrypto } from '../../runtime/node.ts'
import type { CipherSuite } from './cipher-suite.ts'

/** AES-256-GCM of the runtime, which must have it. */
export function aesGcm(): CipherSuite {
  const node = nodeCrypto()
  return node === undefined ? aesGcmOfWeb(globalThis.crypto.subtle) : aesGcmOfNode(node)
}

const TAG_BYTES = 16

/** AES-256-GCM by `node:crypto`, which is synchronous. */
export function aesGcmOfNode(crypto: NodeCrypto): CipherSuite {
  return {
    name: 'aes-256-gcm',
    seal(key, nonce, plaintext, associatedData) {
      const cipher = crypto.createCipheriv('aes-256-gcm', key.bytes, nonce)
      cipher.setAAD(associatedData)
      const sealed = new Uint8Array(plaintext.length + TAG_BYTES)
      sealed.set(cipher.update(plaintext))
      // GCM keeps nothing for the end.
      cipher.final()
      sealed.set(cipher.getAuthTag(), plaintext.length)
      return sealed
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
      // Not the Buffer itself, whose `slice` does not copy.
      return new Uint8Array(buffer, byteOffset, byteLength)
    },
  }
}

type Bytes = Uint8Array<ArrayBuffer>

/** AES-256-GCM by WebCrypto, which is asynchronous and may finish out of order. */
export function aesGcmOfWeb(subtle: SubtleCrypto): CipherSuite {
  const imported = new WeakMap<EncryptionKey, Promise<CryptoKey>>()

  function cryptoKey(key: EncryptionKey): Promise<CryptoKey> {
    let result = imported.get(key)
    if (result === undefined) {
      result = trackExternalWork(
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
      const ciphertext = await trackExternalWork(
        subtle.encrypt(algorithm(nonce, associatedData), imports, plaintext as Bytes),
      )
      return new Uint8Array(ciphertext)
    },
    async open(key, nonce, ciphertext, associatedData) {
      const imports = await cryptoKey(key)
      try {
        const plaintext = await trackExternalWork(
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
