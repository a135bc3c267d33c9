import { describe, expect, it } from 'vitest'
import { aesGcmOfWeb } from '../../../src/engine/encryption/aes-gcm.ts'
import { EncryptionKey } from '../../../src/model/encryption-key.ts'
import { aegis, aesOfNode, aesOfWeb, SUITES } from './support.ts'

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
    ad: '',
    plaintext: '00000000000000000000000000000000',
    ciphertext: '754fc3d8c973246dcc6d741412a4b236',
    tag: '1181a1d18091082bf0266f66297d167d2e68b845f61a3b0527d31fc7b7b89f13',
  },
  {
    ...AEGIS,
    ad: '0001020304050607',
    plaintext: '000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f',
    ciphertext: 'f373079ed84b2709faee373584585d60accd191db310ef5d8b11833df9dec711',
    tag: 'b7d28d0c3c0ebd409fd22b44160503073a547412da0854bfb9723020dab8da1a',
  },
  {
    ...AEGIS,
    ad: '0001020304050607',
    plaintext: '000102030405060708090a0b0c0d',
    ciphertext: 'f373079ed84b2709faee37358458',
    tag: '8c1cc703c81281bee3f6d9966e14948b4a175b2efbdc31e61a98b4465235c2d9',
  },
]

const FEFFE = 'feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308'

/** McGrew and Viega, "The Galois/Counter Mode of Operation (GCM)", test cases 14 and 16. */
const AES_VECTORS: Vector[] = [
  {
    key: '00'.repeat(32),
    nonce: '00'.repeat(12),
    ad: '',
    plaintext: '00'.repeat(16),
    ciphertext: 'cea7403d4d606b6e074ec5d3baf39d18',
    tag: 'd0d1c8a799996bf0265b98b5d48ab919',
  },
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

describe.each(SUITES)('%s', (_, suite) => {
  const nonce = new Uint8Array(suite.name === 'aegis-256' ? 32 : 12).fill(3)
  const ad = new Uint8Array([1, 2])
  const plaintext = new Uint8Array([5, 6, 7])
  const key = new EncryptionKey(new Uint8Array(32).fill(9))

  it('opens nothing altered, and nothing with another key, nonce or associated data', async () => {
    const sealed = await suite.seal(key, nonce, plaintext, ad)
    expect(await suite.open(key, nonce, sealed, ad)).toEqual(plaintext)
    for (let i = 0; i < sealed.length; i++) {
      const changed = sealed.slice()
      changed[i]! ^= 1
      expect(await suite.open(key, nonce, changed, ad)).toBeUndefined()
    }
    const other = new EncryptionKey(new Uint8Array(32).fill(8))
    expect(await suite.open(other, nonce, sealed, ad)).toBeUndefined()
    expect(await suite.open(key, new Uint8Array(nonce.length), sealed, ad)).toBeUndefined()
    expect(await suite.open(key, nonce, sealed, new Uint8Array([1, 3]))).toBeUndefined()
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
