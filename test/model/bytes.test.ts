import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  compareUtf8,
  concatBytes,
  EMPTY_BYTES,
  equalBytes,
  equalSecrets,
  lossyTextOf,
  textOf,
  utf8,
  utf8Length,
} from '../../src/model/bytes.ts'

/**
 * Well-formed text with many characters at the borders of the encoding's lengths and around the surrogates.
 */
const wellFormed = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({
    unit: fc.constantFrom(
      '\0',
      'a',
      '\x7f',
      '\x80',
      '\u07ff',
      '\u0800',
      '\ud7ff',
      '\ue000',
      '\uffff',
      '😀',
      '𐀀',
    ),
    maxLength: 8,
  }),
)
/** Any sequence of UTF-16 units, lone surrogates included. */
const anyText = fc
  .array(fc.oneof(fc.integer({ min: 0, max: 0xffff }), fc.integer({ min: 0xd800, max: 0xdfff })))
  .map((units) => String.fromCharCode(...units))
const bytes = fc.uint8Array({ maxLength: 40 })

function sign(value: number): number {
  return Math.sign(value) + 0
}

describe('UTF-8', () => {
  it('measures the length of the encoding of any text', () => {
    fc.assert(
      fc.property(fc.oneof(wellFormed, anyText), (text) => {
        expect(utf8Length(text)).toBe(new TextEncoder().encode(text).length)
      }),
    )
  })

  it('decodes UTF-8 and rejects anything else', () => {
    expect(textOf(utf8('é\0😀'))).toBe('é\0😀')
    expect(textOf(utf8('\ufeffa'))).toBe('\ufeffa')
    expect(textOf(EMPTY_BYTES)).toBe('')
    expect(textOf(Uint8Array.of(0xff))).toBeUndefined()
    expect(textOf(Uint8Array.of(0x61, 0xc3))).toBeUndefined()
    // An encoded surrogate is not UTF-8.
    expect(textOf(Uint8Array.of(0xed, 0xa0, 0x80))).toBeUndefined()
  })

  it('decodes lossily without failing, and keeps a byte order mark', () => {
    expect(lossyTextOf(EMPTY_BYTES)).toBe('')
    expect(lossyTextOf(utf8('\ufeffa'))).toBe('\ufeffa')
    expect(lossyTextOf(Uint8Array.of(0x61, 0xff, 0x62))).toBe('a\ufffdb')
    expect(lossyTextOf(Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 200))).toBe('\0\0\0\0\0\0\0\ufffd')
    fc.assert(fc.property(wellFormed, (text) => lossyTextOf(utf8(text)) === text))
  })
})

describe('the order of names', () => {
  it('is that of their UTF-8 bytes', () => {
    fc.assert(
      fc.property(wellFormed, wellFormed, wellFormed, (prefix, a, b) => {
        const byBytes = Buffer.compare(utf8(prefix + a), utf8(prefix + b))
        expect(sign(compareUtf8(prefix + a, prefix + b))).toBe(byBytes)
      }),
    )
  })

  it.each([
    ['', 'a', -1],
    ['a', 'a', 0],
    ['a', 'ab', -1],
    ['b', 'ab', 1],
    ['\uffff', '𐀀', -1],
    ['\ue000', '😀', -1],
    ['\ud7ff', '😀', -1],
    ['😀', '😁', -1],
  ])('of %j and %j is %d', (a, b, expected) => {
    expect(sign(compareUtf8(a, b))).toBe(expected)
    expect(sign(compareUtf8(b, a))).toBe(sign(-expected))
  })
})

describe('byte arrays', () => {
  it('are equal if every byte is', () => {
    fc.assert(
      fc.property(bytes, bytes, (a, b) => {
        expect(equalBytes(a, b)).toBe(Buffer.compare(a, b) === 0)
        expect(equalBytes(a, a.slice())).toBe(true)
      }),
    )
    expect(equalBytes(Uint8Array.of(1, 2), Uint8Array.of(1))).toBe(false)
    expect(equalBytes(Uint8Array.of(1), Uint8Array.of(1, 2))).toBe(false)
    expect(equalBytes(Uint8Array.of(1, 2), Uint8Array.of(1, 3))).toBe(false)
  })

  it('are concatenated in order', () => {
    fc.assert(
      fc.property(fc.array(bytes), (parts) => {
        expect([...concatBytes(parts)]).toEqual(parts.flatMap((part) => [...part]))
      }),
    )
  })
})

it.each([
  [[], [], true],
  [[1, 2], [1, 2], true],
  [[1, 2], [1, 3], false],
  [[1, 2], [1], false],
  [[1], [1, 0], false],
  [[0], [], false],
])('secrets %j and %j are equal: %s', (a, b, isEqual) => {
  expect(equalSecrets(Uint8Array.from(a), Uint8Array.from(b))).toBe(isEqual)
})
