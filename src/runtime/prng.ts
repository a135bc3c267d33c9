/** A small seeded random number generator (mulberry32), which makes a failure reproducible from its seed. */
export class Prng {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** Returns a number in [0, 1). */
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
