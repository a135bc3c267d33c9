import fc from 'fast-check'
import { concatBytes } from '../../../src/model/bytes.ts'

type Input = Uint8Array | string

export type Damage<In extends Input> = (input: In) => In

const LENGTH_MAX = 65_536

/** Prefers the beginning, where formats have most of their structure. */
const position = fc.oneof(fc.nat(32), fc.nat(LENGTH_MAX))
const length = fc.oneof(fc.nat(8), fc.nat(64))
/** Seldom very often: deep nesting and long lists. */
const times = fc.oneof(
  { weight: 15, arbitrary: fc.integer({ min: 1, max: 4 }) },
  { weight: 1, arbitrary: fc.constantFrom(64, 512) },
)

const EDGE_NUMBERS = [0n, 1n, 2n ** 7n, 2n ** 14n, 2n ** 16n - 1n, 2n ** 21n, 2n ** 24n - 1n]
const LARGE_NUMBERS = [2n ** 31n, 2n ** 32n - 1n, 2n ** 53n - 1n, 2n ** 53n, 2n ** 63n, 2n ** 64n - 1n]
const NUMBERS = [...EDGE_NUMBERS, ...LARGE_NUMBERS]
/** Varints: edge values, overlong ones, and one without an end. */
const VARINTS = [
  ...NUMBERS.map(varint),
  Uint8Array.of(0x80, 0),
  Uint8Array.of(0x81, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0),
  Uint8Array.of(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01),
  new Uint8Array(12).fill(0x80),
]
const FIXED = NUMBERS.flatMap((number) => {
  const bytes = new Uint8Array(8)
  new DataView(bytes.buffer).setBigUint64(0, number, true)
  return [bytes, bytes.slice(0, 4), bytes.slice(0, 4).reverse(), bytes.slice(0, 3).reverse()]
})

/** Characters that confuse parsers: controls, separators, lone surrogates, other digits, delimiters. */
const CHARACTERS = [
  ...'\0\t\n\r \x0b\x1b\x7f\x80\x85\xa0\xadéſİ\u2028\u202e\ufeff\ufffd\uffff٣０"\'\\/%+-=,;:.*&#?{}[]',
  ...['\r\n', '\ud800', '\udc00', '😀'],
]
const NUMERALS = [
  ...['0', '-0', '-1', '00', '1.0', '1e3', '1e400', '0x10', '1_000', '', '+1', ' 1', 'NaN', 'Infinity'],
  ...['4294967295', '4294967296', '9007199254740991', '9007199254740992', '9223372036854775808'],
  ...['18446744073709551615', '18446744073709551616', '9'.repeat(400)],
]
/** Names of inherited members, and escapes. */
const ESCAPES =
  '__proto__ constructor prototype toString null true undefined %00 %2F %2e%2e % %zz %c3 %ed%a0%80'
const WORDS = [...ESCAPES.split(' '), '\\u0000', '\\ud800', '../../../fuzz/', '..', '==']

/** Changes of bytes, as corruption, mistakes and attacks make them. `words` are fragments of the format. */
export function byteDamage(words: readonly Uint8Array[]): fc.Arbitrary<Damage<Uint8Array>> {
  const random = fc.uint8Array({ maxLength: 64 })
  const piece = fc.oneof(fc.constantFrom(...VARINTS, ...FIXED), random, ...constants(words))
  const mask = fc.integer({ min: 1, max: 255 })
  const flip = fc
    .tuple(position, mask)
    .map(([at, mask]) => changed<Uint8Array>(at, 1, ([byte = 0]) => Uint8Array.of(byte ^ mask)))
  return anyDamage(piece, flip)
}

/** The same of text. */
export function textDamage(words: readonly string[]): fc.Arbitrary<Damage<string>> {
  const random = fc.string({ maxLength: 16 })
  const piece = fc.oneof(fc.constantFrom(...CHARACTERS, ...WORDS), random, ...constants(words))
  const renumber = fc.tuple(fc.nat(50), fc.constantFrom(...NUMERALS)).map(([which, numeral]) => {
    return (text: string) => {
      const numbers = [...text.matchAll(/[0-9]+/g)]
      const { index, 0: digits } = numbers[which % numbers.length] ?? { index: which, 0: '' }
      return changed<string>(index, digits.length, () => numeral)(text)
    }
  })
  const otherCase = (text: string) => (text === text.toLowerCase() ? text.toUpperCase() : text.toLowerCase())
  const switched = fc.tuple(position, length).map(([at, length]) => changed<string>(at, length, otherCase))
  return anyDamage(piece, fc.oneof(renumber, switched))
}

function constants<In>(words: readonly In[]): fc.Arbitrary<In>[] {
  return words.length === 0 ? [] : [fc.constantFrom(...words)]
}

/** One to four changes. */
function anyDamage<In extends Input>(
  piece: fc.Arbitrary<In>,
  ofKind: fc.Arbitrary<Damage<In>>,
): fc.Arbitrary<Damage<In>> {
  const insert = fc
    .tuple(position, length, piece, times)
    .map(([at, length, piece, times]) => changed<In>(at, length, () => repeated(piece, times)))
  const repeat = fc
    .tuple(position, length, times)
    .map(([at, length, times]) => changed<In>(at, length, (cut) => repeated(cut, times + 1)))
  const remove = fc
    .tuple(position, length)
    .map(([at, length]) => changed<In>(at, length, (cut) => cut.slice(0, 0) as In))
  const truncate = position.map((at) => (input: In) => input.slice(0, at % (input.length + 1)) as In)
  const change = fc.oneof(
    { weight: 4, arbitrary: insert },
    { weight: 2, arbitrary: ofKind },
    { weight: 2, arbitrary: repeat },
    { weight: 1, arbitrary: remove },
    { weight: 1, arbitrary: truncate },
  )
  return fc
    .array(change, { minLength: 1, maxLength: 4 })
    .map((changes) => (input) => changes.reduce((damaged, apply) => apply(damaged), input))
}

/** Replaces a piece of the input. */
function changed<In extends Input>(at: number, length: number, change: (cut: In) => In): Damage<In> {
  return (input) => {
    const start = at % (input.length + 1)
    const end = start + length
    const parts = [input.slice(0, start), change(input.slice(start, end) as In), input.slice(end)]
    return joined(parts as In[]).slice(0, LENGTH_MAX) as In
  }
}

function repeated<In extends Input>(piece: In, times: number): In {
  const count = Math.min(times, 1 + Math.floor(4096 / (piece.length + 1)))
  return joined(Array.from({ length: count }, () => piece))
}

function joined<In extends Input>(parts: readonly In[]): In {
  if (typeof parts[0] === 'string') return parts.join('') as In
  return concatBytes(parts as readonly Uint8Array[]) as In
}

export function varint(value: bigint): Uint8Array {
  const bytes: number[] = []
  let rest = value
  for (; rest >= 0x80n; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80)
  return Uint8Array.from([...bytes, Number(rest)])
}
