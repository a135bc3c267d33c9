/** Random words that are drawn together: a call takes as long for one as for all of these. */
const words = new Uint32Array(256)
let unusedWords = 0

/**
 * Returns a random number in [0, 1). Does not use `randomUUID`, which browsers offer to secure pages only.
 *
 * ```ts
 * const retryInMs = secureRandom() * 1000
 * ```
 */
export function secureRandom(): number {
  if (unusedWords === 0) {
    globalThis.crypto.getRandomValues(words)
    unusedWords = words.length
  }
  return words[--unusedWords]! / 0x1_0000_0000
}

/**
 * Returns a function that returns the same random id each time, drawn at the first call: workerd has no
 * random numbers outside of requests.
 */
export function lazyId(): () => string {
  let id: string | undefined
  return () => {
    id ??= idFrom(secureRandom)
    return id
  }
}

const DIGITS = '0123456789abcdef'
/** The digits of the id that is being made. */
const digits = new Array<number>(32)

/**
 * Returns 128 random bits as 32 hexadecimal digits. Reproducible if the source is seeded.
 *
 * ```ts
 * const id = idFrom(secureRandom)
 * ```
 */
export function idFrom(random: () => number): string {
  for (let end = 8; end <= 32; end += 8) {
    const word = Math.floor(random() * 0x1_0000_0000)
    for (let i = 1; i <= 8; i++) digits[end - i] = DIGITS.charCodeAt((word >>> (4 * (i - 1))) & 15)
  }
  // A concatenated string keeps its parts, which take four times the memory: there may be 100,000 ids.
  return String.fromCharCode(...digits)
}
