/** The bytes of an id that the engine draws, which is 32 hexadecimal digits, and its words of 32 bits. */
export const ID_BYTES = 16
export const WORDS = 4

const DIGITS = '0123456789abcdef'

/** Sets the words to those of an id. Returns false if it is not of lower-case hexadecimal digits alone. */
export function parseId(id: string, words: Uint32Array): boolean {
  if (id.length !== 2 * ID_BYTES) return false
  for (let word = 0, at = 0; word < WORDS; word++) {
    let value = 0
    for (const end = at + 8; at < end; at++) {
      const digit = digitOf(id.charCodeAt(at))
      if (digit < 0) return false
      value = (value << 4) | digit
    }
    words[word] = value
  }
  return true
}

export function idOfWords(words: Uint32Array): string {
  const digits: number[] = []
  for (const word of words) {
    for (let shift = 28; shift >= 0; shift -= 4) digits.push(DIGITS.charCodeAt((word >>> shift) & 15))
  }
  // A concatenated string would keep its parts.
  return String.fromCharCode(...digits)
}

/** Returns 32 bits that all depend on all words, so that ids with equal parts do not collide. */
export function hashOfWords(words: Uint32Array): number {
  let hash = 0
  for (let word = 0; word < WORDS; word++) {
    hash = Math.imul(hash ^ words[word]!, 0x2c1b3c6d)
    hash ^= hash >>> 15
  }
  // The end of MurmurHash3.
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}

/** The value of a digit; -1 if it is none. */
function digitOf(unit: number): number {
  if (unit >= 0x30 && unit <= 0x39) return unit - 0x30
  return unit >= 0x61 && unit <= 0x66 ? unit - 0x57 : -1
}
