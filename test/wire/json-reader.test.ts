import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { utf8 } from '../../src/model/bytes.ts'
import {
  JSON_DEPTH_MAX,
  JsonNumber,
  JsonObject,
  type ParsedJson,
  readJson,
  readJsonText,
} from '../../src/wire/json-reader.ts'
import { outcomeOf } from './outcome.ts'

/** The result of `JSON.parse` for the same document, with large and fractional numbers rounded. */
function plain(value: ParsedJson): unknown {
  if (value instanceof JsonNumber) return JSON.parse(value.source)
  if (value instanceof JsonObject) {
    const members = Array.from(value.members(), ([name, member]) => [name, plain(member)])
    return Object.fromEntries(members)
  }
  return Array.isArray(value) ? value.map(plain) : value
}

function parsedNatively(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) }
  } catch {
    return undefined
  }
}

describe('documents', () => {
  it('decodes the same values as JSON.parse, compact or indented', { tags: ['slow'] }, () => {
    const space = fc.constantFrom('', ' ', '\t', '\n')
    fc.assert(
      fc.property(fc.json({ stringUnit: 'binary', maxDepth: 6 }), space, (compact, indent) => {
        const text = JSON.stringify(JSON.parse(compact), null, indent)
        expect(plain(readJson(utf8(text)))).toEqual(JSON.parse(text))
      }),
    )
  })

  it('agrees with JSON.parse on whether a text is JSON', () => {
    const tokens = [
      ...['{', '}', '[', ']', ',', ':', ' ', '\n', '\t', '\r', '\f', '\u00a0', '\ufeff'],
      ...['"', '"a"', '""', '"b', '\\', '\\"', '"\\n"', '"\\u0041"', '"\\x"', '"\\u12"', '"\n"', '"\u2028"'],
      ...['0', '1', '-', '-1', '01', '1.5', '1.', '.5', '1e3', '1e', '1E+2', '+1', '9007199254740993', 'NaN'],
      ...['true', 'false', 'null', 'nul', 'tru', 'True', 'undefined', '/*c*/'],
    ]
    const text = fc.array(fc.constantFrom(...tokens), { maxLength: 8 }).map((parts) => parts.join(''))
    fc.assert(
      fc.property(text, (candidate) => {
        const expected = parsedNatively(candidate)
        if (expected === undefined) expect(outcomeOf(() => readJsonText(candidate))).toBe('400 bad_json')
        else expect(plain(readJsonText(candidate))).toEqual(expected.value)
      }),
    )
  })

  it('agrees with JSON.parse on a document with a mutation', () => {
    const mutated = fc
      .tuple(
        fc.json({ maxDepth: 4 }),
        fc.nat(),
        fc.constantFrom('', '"', '\\', '}', ']', ',', ':', '0', '\n'),
      )
      .map(([json, seed, replacement]) => {
        const offset = seed % json.length
        return json.slice(0, offset) + replacement + json.slice(offset + 1)
      })
    fc.assert(
      fc.property(mutated, (text) => {
        const expected = parsedNatively(text)
        if (expected === undefined) expect(outcomeOf(() => readJsonText(text))).toBe('400 bad_json')
        else expect(plain(readJsonText(text))).toEqual(expected.value)
      }),
    )
  })

  it.each([
    ['nothing', ''],
    ['white space only', ' \n'],
    ['trailing bytes', '{} x'],
    ['a second document', '{}{}'],
    ['a comma too many', '[1,]'],
    ['a comma too many in an object', '{"a":1,}'],
    ['a missing comma', '[1 2]'],
    ['a missing colon', '{"a" 1}'],
    ['a name that is no string', '{a:1}'],
    ['an open array', '[1'],
    ['an open object', '{"a":1'],
    ['an open string', '"a'],
    ['an open string that ends in an escaped quote', '"a\\"'],
    ['single quotes', "'a'"],
    ['a leading zero', '01'],
    ['a sign alone', '-'],
    ['a plus sign', '+1'],
    ['a comment', '/**/1'],
    ['a word cut short', 'tru'],
    ['a word too long', 'nullx'],
    ['a byte order mark', '\ufeff{}'],
    ['white space beyond the four', '\u00a0{}'],
    ['a raw line break in a string', '"a\nb"'],
    ['U+0000 in a string', '"\0"'],
    ['U+001F in a string with escapes', '"\\n\u001f"'],
    ['an unknown escape', '"\\x41"'],
    ['a short \\u escape', '"\\u12"'],
    ['a lone high surrogate', '"\\ud800"'],
    ['a lone low surrogate', '"x\\udc00"'],
    ['surrogates in the wrong order', '"\\udc00\\ud800"'],
    ['a lone surrogate in a name', '{"\\ud800":1}'],
  ])('rejects %s', (_, text) => {
    expect(outcomeOf(() => readJson(utf8(text)))).toBe('400 bad_json')
  })

  it.each([
    ['a byte that never occurs', [0x22, 0xff, 0x22]],
    ['an overlong form', [0x22, 0xc0, 0xaf, 0x22]],
    ['an encoded surrogate', [0x22, 0xed, 0xa0, 0x80, 0x22]],
    ['a sequence cut short', [0x22, 0xe2, 0x82, 0x22]],
  ])('rejects UTF-8 with %s', (_, bytes) => {
    expect(outcomeOf(() => readJson(new Uint8Array(bytes)))).toBe('400 bad_json')
  })

  it.each([
    ['U+007F', '"\u007f"', '\u007f'],
    ['Unicode line separators', '"\u2028\u2029"', '\u2028\u2029'],
    ['a byte order mark within', '"\ufeff"', '\ufeff'],
    ['an escaped surrogate pair', '"\\ud83d\\ude00"', '😀'],
    ['an escaped backslash before u', '"\\\\ud800"', '\\ud800'],
    ['an escaped U+0000', '"\\u0000"', '\0'],
    ['every short escape', '"\\"\\\\\\/\\b\\f\\n\\r\\t"', '"\\/\b\f\n\r\t'],
    ['a string that ends in an escaped backslash', '"a\\\\"', 'a\\'],
  ])('accepts %s', (_, text, value) => {
    expect(readJson(utf8(text))).toBe(value)
  })
})

describe('numbers', () => {
  it.each([
    ['0', 0],
    ['7', 7],
    ['1700000000000', 1_700_000_000_000],
    ['9007199254740991', Number.MAX_SAFE_INTEGER],
  ])('%s is a JavaScript number', (text, value) => {
    expect(readJsonText(text)).toBe(value)
  })

  it.each([
    ['9007199254740992', true],
    ['9007199254740993', true],
    ['9999999999999999', true],
    ['18446744073709551615', true],
    ['18446744073709551616', false],
    ['99999999999999999999', false],
    ['100000000000000000000', false],
    ['-0', false],
    ['-1', false],
    ['1.0', false],
    ['1e3', false],
    ['1E3', false],
    ['0.5', false],
    ['-9007199254740992', false],
  ])('%s keeps its literal; an unsigned 64-bit integer: %s', (text, isUint64) => {
    const value = readJsonText(text)
    expect(value).toBeInstanceOf(JsonNumber)
    expect(value).toMatchObject({ source: text, isUint64 })
  })

  it('are never rounded', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 2n ** 65n }), (integer) => {
        const value = readJsonText(String(integer))
        if (value instanceof JsonNumber) {
          expect(integer).toBeGreaterThan(BigInt(Number.MAX_SAFE_INTEGER))
          expect(value.source).toBe(String(integer))
          expect(value.isUint64).toBe(integer < 2n ** 64n)
        } else expect(BigInt(value as number)).toBe(integer)
      }),
    )
  })
})

it('can be nested up to the limit and no deeper', () => {
  const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)
  expect(outcomeOf(() => readJsonText(nested(JSON_DEPTH_MAX)))).toBe('accepted')
  expect(outcomeOf(() => readJsonText(nested(JSON_DEPTH_MAX + 1)))).toBe('400 bad_json')
  expect(outcomeOf(() => readJsonText('['.repeat(1_000_000)))).toBe('400 bad_json')
})
