import fc from 'fast-check'
import { isWellFormed, textOf, utf8 } from '../../../../src/model/bytes.ts'
import {
  JSON_DEPTH_MAX,
  JsonNumber,
  JsonObject,
  type ParsedJson,
  readJson,
  readJsonText,
} from '../../../../src/wire/json-reader.ts'
import { equal, type Outcome, ok, outcomeOf } from '../harness/assertions.ts'
import { headwaterError, nothing } from '../harness/refusals.ts'
import { target } from '../harness/target.ts'
import { integer } from '../models.ts'

const numbers = fc.oneof(
  integer,
  // A negative zero is encoded as 0.
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0),
  fc.constantFrom(-1, 2 ** 53, 2 ** 63, 2 ** 64, 1e300, 5e-324),
)
const documents = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc.constantFrom(null, true, false),
    numbers,
    fc.string({ unit: fc.constantFrom('a', '"', '\\', '\n', '\u2028', 'é', '😀', ' '), maxLength: 8 }),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(
      fc.oneof(fc.string({ maxLength: 4 }), fc.constantFrom('__proto__', 'toString')),
      tie('value'),
      { maxKeys: 3 },
    ),
  ),
})).value

const DEEP = [JSON_DEPTH_MAX, JSON_DEPTH_MAX + 1].flatMap((depth) => [
  '['.repeat(depth) + ']'.repeat(depth),
  `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`,
])

const WORDS = [
  ...DEEP,
  ...['\\\\', '\\\\"', '\\\\\\"'],
  ...['{', '}', '[', ']', ',', ':', '"', '\\', '"a":', '"__proto__":', '[[[[', '{"a":', '/**/', "'a'"],
  ...[
    '\\u0041',
    '\\ud83d\\ude00',
    '\\ud83d',
    '\\n',
    '\\x',
    '\\"',
    '\t',
    '\u2028',
    '\u00a0',
    'nul',
    'tru',
    '-',
    '.',
    'e5',
  ],
]

/** The results of this reader and of the platform's. */
interface Compared {
  readonly actual: Outcome<unknown>
  readonly expected: Outcome<unknown>
}

const isBadJson = headwaterError('bad_json')

export const jsonText = target({
  name: 'json-text',
  models: documents,
  encode: (value) => JSON.stringify(value),
  decode: (input: string): Compared => ({
    actual: outcomeOf(() => plain(readJsonText(input))),
    expected: outcomeOf(() => JSON.parse(input)),
  }),
  means: (value) => ({ actual: { value }, expected: { value } }),
  refuses: nothing,
  verify: ({ actual, expected }, input) => compare(actual, expected, input),
  words: WORDS,
  share: 60,
})

export const jsonBytes = target({
  name: 'json-bytes',
  models: documents,
  encode: (value) => utf8(JSON.stringify(value)),
  decode: (input: Uint8Array): Compared => ({
    actual: outcomeOf(() => plain(readJson(input))),
    expected: outcomeOf(() => JSON.parse(textOf(input) ?? 'not UTF-8')),
  }),
  means: (value) => ({ actual: { value }, expected: { value } }),
  refuses: nothing,
  verify: ({ actual, expected }, input) => compare(actual, expected, textOf(input) ?? ''),
  words: [
    ...WORDS.map(utf8),
    Uint8Array.of(0xef, 0xbb, 0xbf),
    Uint8Array.of(0xed, 0xa0, 0x80),
    Uint8Array.of(0xc0, 0x80),
  ],
  share: 30,
})

/** Both decode the same value or both reject. This reader rejects in two more cases. */
function compare(actual: Outcome<unknown>, expected: Outcome<unknown>, text: string): void {
  if ('value' in actual) {
    ok('value' in expected, 'it reads what is no JSON')
    ok(depthOf(actual.value) <= JSON_DEPTH_MAX, 'it reads what is nested too deep')
    equal(actual, expected, 'what is read')
    return
  }
  if (!isBadJson(actual.error)) throw actual.error
  ok('error' in expected || mayNestTooDeep(text) || hasHalfPair(text), 'it refuses JSON')
}

function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  return 1 + Object.values(value).reduce((most: number, member) => Math.max(most, depthOf(member)), 0)
}

function mayNestTooDeep(text: string): boolean {
  return (text.match(/[[{]/g)?.length ?? 0) > JSON_DEPTH_MAX
}

function hasHalfPair(text: string): boolean {
  let found = false
  JSON.parse(text, (name: string, value: unknown) => {
    found ||= !isWellFormed(name) || (typeof value === 'string' && !isWellFormed(value))
    return value
  })
  return found
}

/** As `JSON.parse` returns it: numbers rounded, and the last of several members with the same name. */
function plain(value: ParsedJson): unknown {
  if (value instanceof JsonNumber) return Number(value.source)
  if (value instanceof JsonObject) {
    return Object.fromEntries([...value.members()].map(([name, member]) => [name, plain(member)]))
  }
  return Array.isArray(value) ? value.map(plain) : value
}
