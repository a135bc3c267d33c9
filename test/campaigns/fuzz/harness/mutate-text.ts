import type { Prng } from '../../../../src/runtime/prng.ts'

const CHARACTERS_MAX = 65_536

/** Material that a mutation inserts. */
interface Material {
  readonly others: readonly string[]
  readonly words: readonly string[]
}
type Mutation = (text: string, random: Prng, material: Material) => string

/**
 * Characters that confuse parsers: controls, separators, combining marks, lone surrogates, non-ASCII digits.
 */
const ODD_CHARACTERS = [
  ...[
    '\0',
    '\t',
    '\n',
    '\r',
    '\r\n',
    ' ',
    '\x0b',
    '\x1b',
    '\x7f',
    '\x80',
    '\x85',
    '\xa0',
    '\xad',
    'é',
    'ſ',
    'İ',
  ],
  ...['\u2028', '\u202e', '\ufeff', '\ufffd', '\uffff', '\ud800', '\udc00', '😀', '٣', '０'],
  ...['"', "'", '\\', '/', '%', '+', '-', '=', ',', ';', ':', '.', '*', '&', '#', '?', '{', '}', '[', ']'],
]
const ODD_NUMBERS = [
  ...['0', '-0', '-1', '00', '1.0', '1e3', '1e400', '0x10', '1_000', '', '+1', ' 1', 'NaN', 'Infinity'],
  ...['4294967295', '4294967296', '9007199254740991', '9007199254740992', '9223372036854775808'],
  ...['18446744073709551615', '18446744073709551616', '9'.repeat(400)],
]
/** Names of inherited members, and escapes. */
const ODD_WORDS = [
  ...['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', 'null', 'true', 'undefined'],
  ...[
    '%00',
    '%2F',
    '%2e%2e',
    '%',
    '%zz',
    '%c3',
    '%ed%a0%80',
    '\\u0000',
    '\\ud800',
    '../../../fuzz/',
    '..',
    '==',
  ],
]

/** Applies one mutation, as mistakes and attacks would. */
export function mutateText(text: string, random: Prng, material: Material): string {
  const mutated = random.pick(MUTATIONS)(text, random, material)
  return mutated.length > CHARACTERS_MAX ? mutated.slice(0, CHARACTERS_MAX) : mutated
}

export function randomText(random: Prng): string {
  const length = random.below(random.chance(0.9) ? 32 : 512)
  return Array.from({ length }, () => randomCharacter(random)).join('')
}

const MUTATIONS: readonly Mutation[] = [
  (text, random) => replaced(text, random, 1, () => randomCharacter(random)),
  (text, random) => replaced(text, random, 0, () => random.pick(ODD_CHARACTERS)),
  (text, random) => replaced(text, random, random.below(8), () => random.pick(ODD_WORDS)),
  (text, random, { words }) => replaced(text, random, random.below(8), () => wordOf(words, random)),
  (text, random, { words }) => replaced(text, random, 0, () => repeated(wordOf(words, random), random)),
  (text, random) => replaced(text, random, 1 + random.below(8), (piece) => repeated(piece, random)),
  (text, random) => replaced(text, random, 1 + random.below(8), () => ''),
  (text, random) => replaced(text, random, 1 + random.below(32), (piece) => piece + piece),
  (text, random) => replaced(text, random, 1 + random.below(8), switchedCase),
  (text, random) => text.slice(0, random.below(text.length + 1)),
  (text, random) => text.slice(random.below(text.length + 1)),
  (text, random) => withNumber(text, random),
  (text, random) => withNumber(text, random),
  (text, random, { others }) => text.slice(0, random.below(text.length + 1)) + tailOf(others, random),
  (text, random, { others }) => replaced(text, random, 0, () => tailOf(others, random)),
]

function replaced(
  text: string,
  random: Prng,
  length: number,
  replacement: (piece: string) => string,
): string {
  const start = random.below(text.length + 1)
  return text.slice(0, start) + replacement(text.slice(start, start + length)) + text.slice(start + length)
}

/** Replaces one of the numbers by another. */
function withNumber(text: string, random: Prng): string {
  const numbers = [...text.matchAll(/[0-9]+/g)]
  if (numbers.length === 0) return replaced(text, random, 0, () => random.pick(ODD_NUMBERS))
  const { index, 0: digits } = random.pick(numbers)
  return text.slice(0, index) + random.pick(ODD_NUMBERS) + text.slice(index + digits.length)
}

/** Often twice, seldom very often: deep nesting and long lists. */
function repeated(piece: string, random: Prng): string {
  const times = random.chance(0.95) ? 1 + random.below(4) : 2 ** random.below(12)
  return piece.repeat(Math.min(times, 1 + Math.floor(16_384 / (piece.length + 1))))
}

function switchedCase(piece: string): string {
  return piece === piece.toLowerCase() ? piece.toUpperCase() : piece.toLowerCase()
}

function tailOf(others: readonly string[], random: Prng): string {
  const other = random.pick(others)
  return other.slice(random.below(other.length + 1))
}

function wordOf(words: readonly string[], random: Prng): string {
  return random.pick(words.length === 0 ? ODD_WORDS : words)
}

function randomCharacter(random: Prng): string {
  if (random.chance(0.3)) return random.pick(ODD_CHARACTERS)
  return String.fromCharCode(random.chance(0.95) ? 0x20 + random.below(0x5f) : random.below(0x1_0000))
}
