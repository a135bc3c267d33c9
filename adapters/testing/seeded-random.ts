import { assertInteger } from '../../src/model/validation.ts'
import { Prng } from '../../src/runtime/random.ts'

/**
 * A source of random numbers from 0 to below 1 that are the same for the same seed, for faults by chance and
 * for the option `random` of `open`. Throws `invalid` unless the seed is an integer from 0.
 *
 * ```ts
 * const random = seededRandom(7)
 * faultyStorage(storage).fail('append', { when: () => random() < 0.1 })
 * ```
 */
export function seededRandom(seed: number): () => number {
  assertInteger(seed, 'seed')
  const prng = new Prng(seed)
  return () => prng.next()
}
