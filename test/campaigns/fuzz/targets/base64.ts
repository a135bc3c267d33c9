import fc from 'fast-check'
import { EncryptionKey } from '../../../../src/model/encryption-key.ts'
import { decodeBase64, encodeBase64, selectBase64Codec } from '../../../../src/wire/base64.ts'
import { equal, ok } from '../harness/assertions.ts'
import { headwaterError, nothing } from '../harness/refusals.ts'
import { target } from '../harness/target.ts'
import { bytes } from '../models.ts'

const WORDS = ['=', '==', 'AA', 'AA==', 'AAA=', '+', '/', '-', '_', ' ', '\n', 'é', '\u0141', 'QQ==', 'QR==']

/** The codec for a platform without `Uint8Array.fromBase64` and `Buffer`. */
const portable = selectBase64Codec({ Uint8Array: { prototype: {} } })

/** The codec for a platform with `Uint8Array.fromBase64`. */
const standard = selectBase64Codec({
  Uint8Array: {
    fromBase64: (text) => {
      const clean = text.replace(/[\t\n\f\r ]/g, '')
      if (!STRICT.test(clean)) throw new SyntaxError('not base64')
      return new Uint8Array(Buffer.from(clean, 'base64'))
    },
    prototype: {
      toBase64() {
        return Buffer.from(this).toString('base64')
      },
    },
  },
})
/** Padded, with unused bits set to zero. */
const STRICT = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$/

export const base64 = target({
  name: 'base64',
  models: bytes,
  encode: encodeBase64,
  decode: (input: string) => [decodeBase64(input), portable.decode(input), standard.decode(input)],
  means: (model) => [model, model, model],
  refuses: nothing,
  verify([native, portable, other], input) {
    equal(portable, native, 'what the portable codec reads')
    equal(other, native, 'what the codec of other platforms reads')
    ok((native !== undefined) === STRICT.test(input), 'what is strict base64')
    if (native !== undefined) equal(encodeBase64(native), input, 'the text again')
  },
  words: WORDS,
  share: 40,
})

export const encryptionKey = target({
  name: 'encryption-key',
  models: fc.uint8Array({ minLength: 32, maxLength: 32 }),
  encode: encodeBase64,
  decode: (input: string) => new EncryptionKey(input).bytes,
  means: (key) => key,
  refuses: headwaterError('encryption_key_invalid'),
  verify(key, input) {
    equal(key.length, 32, 'the length of a key')
    equal(encodeBase64(key), input.trim(), 'the text again')
  },
  words: WORDS,
})
