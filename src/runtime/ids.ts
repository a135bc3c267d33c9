/** Random words that are drawn together: a call takes as long for one as for all of these. */
const words = new Uint32Array(256)
let unusedWords = 0

/**
 * Returns a random number in [0, 1). Does not use `randomUUID`, which browsers offer to secure pages only.
 */
export function secureRandom(): number {
  if (unusedWords === 0) {
    globalThis.crypto.getRandomValues(words)
    unusedWords = words.length
  }
  return words[--unusedWords]! / 0x1_0000_0000
}

/** Returns 128 random bits as 32 hexadecimal digits. Reproducible if the source is seeded. */
export function idFrom(random: () => number): string {
  let id = ''
  for (let word = 0; word < 4; word++) {
    id += Math.floor(random() * 0x1_0000_0000)
      .toString(16)
      .padStart(8, '0')
  }
  return id
}
