import { describe, expect, it } from 'vitest'
import { decodeBase64, encodeBase64 } from '../../src/model/bytes.ts'
import { asInBrowser } from './as-in-browser.ts'

const codecs = {
  Node: { encode: encodeBase64, decode: decodeBase64 },
  'the Web': {
    encode: (bytes: Uint8Array) => asInBrowser(() => encodeBase64(bytes)),
    decode: (text: string) => asInBrowser(() => decodeBase64(text)),
  },
}

describe.each(Object.entries(codecs))('base64 of %s', (_, codec) => {
  it.each([
    ['', ''],
    ['f', 'Zg=='],
    ['fo', 'Zm8='],
    ['foo', 'Zm9v'],
    ['foob', 'Zm9vYg=='],
    ['fooba', 'Zm9vYmE='],
    ['foobar', 'Zm9vYmFy'],
    ['fence', 'ZmVuY2U='],
    ['trim', 'dHJpbQ=='],
  ])('encodes %j as %j', (plain, encoded) => {
    expect(codec.encode(new TextEncoder().encode(plain))).toBe(encoded)
    expect(codec.decode(encoded)).toEqual(new TextEncoder().encode(plain))
  })

  it('uses the standard alphabet', () => {
    expect(codec.encode(new Uint8Array([0xfb, 0xff, 0xbf]))).toBe('+/+/')
    expect(codec.decode('+/+/')).toEqual(new Uint8Array([0xfb, 0xff, 0xbf]))
  })

  it.each([
    ['no padding', 'Zg'],
    ['half the padding', 'Zg='],
    ['too much padding', 'Zm8=='],
    ['padding alone', '===='],
    ['padding of nothing', 'Zm9v===='],
    ['padding within', 'Zg==Zm9v'],
    ['the lowest of four spare bits', 'Zh=='],
    ['the highest of four spare bits', 'Zo=='],
    ['the lower of two spare bits', 'Zm9='],
    ['the higher of two spare bits', 'Zm6='],
    ['the URL-safe minus', '-/+/'],
    ['the URL-safe underscore', '+_+/'],
    ['a leading space', ' Zm9v'],
    ['spaces to a multiple of four', 'Zm9v    '],
    ['a space within', 'Zm 9'],
    ['a line break', 'Zm9v\nYmFy'],
    ['a trailing line break', 'Zm9v\r\n\r\n'],
    ['a space before the padding', 'Zg ='],
    ['one digit', 'Z'],
    ['five digits', 'Zm9vY'],
    ['a character outside the alphabet', 'Zm9!'],
    ['U+0000', 'Zm9\0'],
    ['a character beyond ASCII', 'Zm9é'],
    ['a character whose low byte is a digit', `Zm9${String.fromCharCode(0x100 + 0x41)}`],
  ])('rejects %s', (_name, text) => {
    expect(codec.decode(text)).toBeUndefined()
  })

  it('returns plain byte arrays', () => {
    expect(Object.getPrototypeOf(codec.decode('Zm9v'))).toBe(Uint8Array.prototype)
  })

  it('encodes a view, not its buffer', () => {
    expect(codec.encode(new TextEncoder().encode('xfoox').subarray(1, 4))).toBe('Zm9v')
  })

  it('encodes and decodes 100 kB', () => {
    const bytes = new Uint8Array(100_001).map((_byte, index) => index * 31)
    expect(Buffer.compare(codec.decode(codec.encode(bytes))!, bytes)).toBe(0)
  })
})
