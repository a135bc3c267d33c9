import { Prng } from '../../src/runtime/random.ts'

/**
 * A source of random numbers from 0 to below 1 that are the same for the same seed, for faults by chance and
 * for the option `random` of `open`.
 *
 * ```ts
 * const random = seededRandom(7)
 * storage.fail('append', { when: () => random() < 0.1 })
 * ```
 */
export function seededRandom(seed: number): () => number {
  const prng = new Prng(seed)
  return () => prng.next()
}
