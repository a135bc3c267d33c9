import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { utf8 } from '../../src/model/bytes.ts'
import { integerOf, Malformed, parseJson, readJson, safeIntegerOf, timeOf } from '../../src/wire/json.ts'
import { outcomeOf } from './outcome.ts'

describe('a document', () => {
  it.each([
    ['nothing', ''],
    ['trailing bytes', '{} x'],
    ['a comma too many', '[1,]'],
    ['single quotes', "'a'"],
    ['a leading zero', '01'],
    ['a byte order mark', '\ufeff{}'],
    ['a raw line break in a string', '"a\nb"'],
    ['a lone high surrogate', '"\\ud800"'],
    ['a lone low surrogate', '["x\\uDC00"]'],
    ['surrogates in the wrong order', '{"a":{"b":"\\udc00\\ud800"}}'],
    ['a hundred thousand open arrays', '['.repeat(100_000)],
  ])('is rejected with %s', (_, text) => {
    expect(outcomeOf(() => readJson(utf8(text)))).toBe('400 bad_json')
  })

  it.each([
    ['a byte that never occurs', [0x22, 0xff, 0x22]],
    ['an overlong form', [0x22, 0xc0, 0xaf, 0x22]],
    ['an encoded surrogate', [0x22, 0xed, 0xa0, 0x80, 0x22]],
    ['a sequence cut short', [0x22, 0xe2, 0x82, 0x22]],
  ])('is rejected if its UTF-8 has %s', (_, bytes) => {
    expect(outcomeOf(() => readJson(new Uint8Array(bytes)))).toBe('400 bad_json')
  })

  it.each([
    ['an escaped surrogate pair', '"\\ud83d\\ude00"', '😀'],
    ['an escaped backslash before u', '"\\\\ud800"', '\\ud800'],
    ['a byte order mark within', '"\ufeff"', '\ufeff'],
    ['an escaped U+0000', '"\\u0000"', '\0'],
    ['deep nesting', `${'['.repeat(500)}${']'.repeat(500)}`, expect.any(Array)],
  ])('may have %s', (_, text, value) => {
    expect(readJson(utf8(text))).toEqual(value)
  })
})

describe('an integer', () => {
  it('is never rounded', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), (integer) => {
        const value = integerOf(parseJson(String(integer)), 'n')
        const isExact = integer <= BigInt(Number.MAX_SAFE_INTEGER)
        expect(value).toBe(isExact ? Number(integer) : Number.POSITIVE_INFINITY)
      }),
    )
  })

  it.each([
    ['0', 0],
    ['1.0', 1],
    ['1e3', 1000],
    ['9007199254740991', Number.MAX_SAFE_INTEGER],
    ['9007199254740992', Number.POSITIVE_INFINITY],
    ['9007199254740993', Number.POSITIVE_INFINITY],
    ['18446744073709551615', Number.POSITIVE_INFINITY],
  ])('%s is %d', (text, value) => {
    expect(integerOf(parseJson(text), 'n')).toBe(value)
  })

  it.each(['-1', '0.5', '18446744073709555000', '1e400', '"1"', 'null', 'true', '[1]'])(
    'is not %s',
    (text) => {
      expect(() => integerOf(parseJson(text), 'n')).toThrow(
        '`n` must be an integer from 0 to 18446744073709551615',
      )
      expect(() => safeIntegerOf(parseJson(text), 'n')).toThrow(Malformed)
    },
  )

  it('of a response must be one that JavaScript has', () => {
    expect(safeIntegerOf(parseJson('9007199254740991'), 'n')).toBe(Number.MAX_SAFE_INTEGER)
    expect(() => safeIntegerOf(parseJson('9007199254740992'), 'n')).toThrow(Malformed)
  })
})

describe('a time', () => {
  it.each([
    ['1970-01-01T00:00:00Z', 0],
    ['1970-01-01t00:00:00z', 0],
    ['1970-01-01 00:00:00Z', 0],
    ['1970-01-01T01:30:00+01:30', 0],
    ['1969-12-31T23:00:00-01:00', 0],
    ['1970-01-01T00:00:00.001Z', 1],
    ['1970-01-01T00:00:00.001999999999Z', 1],
    ['1970-01-01T00:00:00.5Z', 500],
    ['2024-02-29T00:00:00Z', 1_709_164_800_000],
    ['2016-12-31T23:59:60Z', 1_483_228_800_000],
    ['0099-01-01T00:00:00Z', -59_042_995_200_000],
  ])('can be %s', (text, expected) => {
    expect(timeOf(text, 'at').getTime()).toBe(expected)
  })

  it.each([
    '',
    '1970-01-01',
    '1970-01-01T00:00:00',
    '1970-01-01T00:00Z',
    '1970-13-01T00:00:00Z',
    '1970-00-01T00:00:00Z',
    '1970-02-29T00:00:00Z',
    '1970-04-31T00:00:00Z',
    '1970-01-00T00:00:00Z',
    '1970-01-01T24:00:00Z',
    '1970-01-01T00:60:00Z',
    '1970-01-01T00:00:61Z',
    '1970-01-01T00:00:00+24:00',
    '1970-01-01T00:00:00+01',
    '1970-01-01T00:00:00.Z',
    '+001970-01-01T00:00:00Z',
    ' 1970-01-01T00:00:00Z',
    '0000-01-01T00:00:00+01:00',
    `1970-01-01T00:00:00.${'0'.repeat(60)}Z`,
  ])('cannot be %j', (text) => {
    expect(() => timeOf(text, 'at')).toThrow('`at` must be a date and time of RFC 3339')
  })
})
