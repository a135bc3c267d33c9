import { concatBytes } from '../../../../src/model/bytes.ts'
import type { Prng } from '../../../../src/runtime/prng.ts'

const BYTES_MAX = 65_536

/** Material that a mutation inserts. */
interface Material {
  readonly others: readonly Uint8Array[]
  readonly words: readonly Uint8Array[]
}
type Mutation = (bytes: Uint8Array, random: Prng, material: Material) => Uint8Array

const EDGE_BYTES = [0, 1, 2, 0x0a, 0x7f, 0x80, 0xfe, 0xff]
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

/** Applies one mutation, as corruption, mistakes and attacks would. */
export function mutateBytes(bytes: Uint8Array, random: Prng, material: Material): Uint8Array {
  const mutated = random.pick(MUTATIONS)(bytes, random, material)
  return mutated.length > BYTES_MAX ? mutated.subarray(0, BYTES_MAX) : mutated
}

export function randomBytes(random: Prng): Uint8Array {
  const bytes = new Uint8Array(random.below(random.chance(0.9) ? 64 : 1024))
  for (let i = 0; i < bytes.length; i++) bytes[i] = random.below(256)
  return bytes
}

const MUTATIONS: readonly Mutation[] = [
  // Flips a bit.
  (bytes, random) => withByte(bytes, random, (byte) => byte ^ (1 << random.below(8))),
  (bytes, random) => withByte(bytes, random, () => random.below(256)),
  (bytes, random) => withByte(bytes, random, () => random.pick(EDGE_BYTES)),
  // Changes a length or number by one.
  (bytes, random) => withByte(bytes, random, (byte) => byte + (random.chance(0.5) ? 1 : -1)),
  // The same varint with a superfluous byte.
  (bytes, random) => replaced(bytes, random, 1, (byte) => Uint8Array.of((byte[0] ?? 0) | 0x80, 0)),
  (bytes, random) => bytes.subarray(0, random.below(bytes.length + 1)),
  (bytes, random) => bytes.subarray(random.below(bytes.length + 1)),
  (bytes, random) => replaced(bytes, random, 1 + random.below(16), () => NOTHING),
  (bytes, random) => replaced(bytes, random, 1 + random.below(64), (piece) => concatBytes([piece, piece])),
  (bytes, random) => replaced(bytes, random, 1 + random.below(4), () => random.pick(VARINTS)),
  (bytes, random) => replaced(bytes, random, random.pick([2, 3, 4, 8]), (piece) => fixed(random, piece)),
  (bytes, random) => replaced(bytes, random, 0, () => randomBytes(random)),
  (bytes, random) => replaced(bytes, random, 1 + random.below(8), (piece) => repeated(piece, random)),
  (bytes, random, { words }) => replaced(bytes, random, 0, () => repeated(wordOf(words, random), random)),
  (bytes, random, { words }) => replaced(bytes, random, random.below(4), () => wordOf(words, random)),
  (bytes, random, { others }) => {
    const other = random.pick(others)
    return concatBytes([bytes.subarray(0, random.below(bytes.length + 1)), tailOf(other, random)])
  },
  (bytes, random, { others }) => replaced(bytes, random, 0, () => tailOf(random.pick(others), random)),
]

const NOTHING = new Uint8Array(0)

function withByte(bytes: Uint8Array, random: Prng, change: (byte: number) => number): Uint8Array {
  const changed = bytes.slice()
  // Prefers the beginning, where formats have most of their structure.
  const at = random.below(random.chance(0.5) ? Math.min(32, bytes.length) : bytes.length)
  if (bytes.length > 0) changed[at] = change(bytes[at]!)
  return changed
}

function replaced(
  bytes: Uint8Array,
  random: Prng,
  length: number,
  replacement: (piece: Uint8Array) => Uint8Array,
): Uint8Array {
  const start = random.below(bytes.length + 1)
  const end = Math.min(start + length, bytes.length)
  return concatBytes([bytes.subarray(0, start), replacement(bytes.subarray(start, end)), bytes.subarray(end)])
}

/** Often twice, seldom very often: deep nesting and long lists. */
function repeated(piece: Uint8Array, random: Prng): Uint8Array {
  const times = random.chance(0.95) ? 1 + random.below(4) : 2 ** random.below(10)
  return concatBytes(Array.from({ length: Math.min(times, 1 + 4096 / (piece.length + 1)) }, () => piece))
}

function tailOf(bytes: Uint8Array, random: Prng): Uint8Array {
  return bytes.subarray(random.below(bytes.length + 1))
}

function wordOf(words: readonly Uint8Array[], random: Prng): Uint8Array {
  return words.length === 0 ? NOTHING : random.pick(words)
}

/** The length of the piece as a number, in either byte order. */
function fixed(random: Prng, { length }: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(8)
  new DataView(bytes.buffer).setBigUint64(0, random.pick(NUMBERS), true)
  const piece = bytes.slice(0, length)
  return random.chance(0.5) ? piece : piece.reverse()
}

export function varint(value: bigint): Uint8Array {
  const bytes: number[] = []
  let rest = value
  for (; rest >= 0x80n; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80)
  return Uint8Array.from([...bytes, Number(rest)])
}
