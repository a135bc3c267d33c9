import { Prng } from '../../../src/storage/conformance/prng.ts'

/** Milliseconds, or `'500ms'`, `'2s'`: from the first to the second, both included. */
export type DelayRange = readonly [from: number | string, to: number | string]

/**
 * The chance of one call: it depends on the seed, on what is called and on how often that was called before, and on nothing else. So other calls in between, or
 * rates that are set later, do not move the faults of a seed.
 */
export function chanceOf(seed: number, what: string, call: number): Prng {
  return new Prng(fnv1a(`${seed}/${what}/${call}`))
}

/** Spreads texts that differ little over all 32 bits. */
function fnv1a(text: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return hash >>> 0
}
