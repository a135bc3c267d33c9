/** Random words that are drawn together: a call takes as long for one as for all of these. */
const words = new Uint32Array(256)
let unusedWords = 0

/** Returns a random number in [0, 1). Not by `randomUUID`, which browsers offer to secure pages only. */
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

/** A small seeded random number generator (mulberry32), which makes a failure reproducible from its seed. */
export class Prng {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }

  /** Returns an integer in [0, end). */
  below(end: number): number {
    return Math.floor(this.next() * end)
  }

  chance(probability: number): boolean {
    return this.next() < probability
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[this.below(items.length)]!
  }
}
