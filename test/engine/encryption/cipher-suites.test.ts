import { describe, expect, it } from 'vitest'
import { aesGcmOfWeb } from '../../../src/engine/encryption/aes-gcm.ts'
import { EncryptionKey } from '../../../src/model/encryption-key.ts'
import { aegis, aesOfNode, aesOfWeb } from './support.ts'

function hex(text: string): Uint8Array {
  return new Uint8Array(Buffer.from(text, 'hex'))
}

interface Vector {
  readonly key: string
  readonly nonce: string
  readonly ad: string
  readonly plaintext: string
  readonly ciphertext: string
  readonly tag: string
}

const AEGIS = {
  key: '1001000000000000000000000000000000000000000000000000000000000000',
  nonce: '1000020000000000000000000000000000000000000000000000000000000000',
}

/** draft-irtf-cfrg-aegis-aead, test vectors of AEGIS-256 with 256 bits of tag. */
const AEGIS_VECTORS: Vector[] = [
  {
    ...AEGIS,
    ad: '0001020304050607',
    plaintext: '000102030405060708090a0b0c0d',
    ciphertext: 'f373079ed84b2709faee37358458',
    tag: '8c1cc703c81281bee3f6d9966e14948b4a175b2efbdc31e61a98b4465235c2d9',
  },
]

const FEFFE = 'feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308'

/** McGrew and Viega, "The Galois/Counter Mode of Operation (GCM)", test case 16. */
const AES_VECTORS: Vector[] = [
  {
    key: FEFFE,
    nonce: 'cafebabefacedbaddecaf888',
    ad: 'feedfacedeadbeeffeedfacedeadbeefabaddad2',
    plaintext:
      'd9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72' +
      '1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39',
    ciphertext:
      '522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa' +
      '8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662',
    tag: '76fc6ece0f4e1768cddf8853bb2d551b',
  },
]

describe.each([
  ['aegis-256 by libsodium', aegis, AEGIS_VECTORS],
  ['aes-256-gcm by node:crypto', aesOfNode, AES_VECTORS],
  ['aes-256-gcm by WebCrypto', aesOfWeb, AES_VECTORS],
] as const)('%s', (_, suite, vectors) => {
  it.each(vectors)('matches the published vector with tag $tag', async (vector) => {
    const key = new EncryptionKey(hex(vector.key))
    const [nonce, ad, plaintext] = [hex(vector.nonce), hex(vector.ad), hex(vector.plaintext)]
    const sealed = await suite.seal(key, nonce, plaintext, ad)
    expect(Buffer.from(sealed).toString('hex')).toBe(vector.ciphertext + vector.tag)
    expect(await suite.open(key, nonce, sealed, ad)).toEqual(plaintext)
  })
})

describe('an unrelated failure is not reported as a wrong key', () => {
  const key = new EncryptionKey(new Uint8Array(32))

  it('if libsodium fails', () => {
    expect(() => aegis.open(key, new Uint8Array(3), new Uint8Array(64), new Uint8Array())).toThrow()
  })

  it('if WebCrypto fails', async () => {
    const broken = {
      importKey: crypto.subtle.importKey.bind(crypto.subtle),
      decrypt: () => Promise.reject(new DOMException('busy', 'QuotaExceededError')),
    }
    const suite = aesGcmOfWeb(broken as unknown as SubtleCrypto)
    await expect(suite.open(key, new Uint8Array(12), new Uint8Array(16), new Uint8Array())).rejects.toThrow(
      'busy',
    )
  })
})
