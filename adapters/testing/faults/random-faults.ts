import { invalid } from '../../../src/model/errors.ts'
import { Prng } from '../../../src/runtime/prng.ts'
import { millisecondsIn } from '../duration.ts'

/**
 * A range of delays in milliseconds or as `'500ms'`, `'2s'`, both ends included.
 *
 * ```ts
 * const range: DelayRange = ['10ms', '2s']
 * const faulty = faultyStorage(storage, { rates: { read: { delay: range } } })
 * ```
 */
export type DelayRange = readonly [from: number | string, to: number | string]

/**
 * Creates the random numbers of one call. They depend only on the seed, on the operation and on its number of
 * calls, so that other operations and later rates do not change the faults of a seed.
 */
export function chanceOf(seed: number, operation: string, call: number): Prng {
  return new Prng(fnv1a(`${seed}/${operation}/${call}`))
}

/** Hashes a string; similar strings differ in all 32 bits. */
function fnv1a(text: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return hash >>> 0
}

/** Throws `invalid` unless these are probabilities with a sum of at most 1. */
export function checkProbabilities(name: string, rates: Readonly<Record<string, number | undefined>>): void {
  let sum = 0
  for (const [rate, probability = 0] of Object.entries(rates)) {
    if (!(probability >= 0 && probability <= 1)) {
      throw invalid(`${name}.${rate} must be from 0 to 1, not ${probability}`, `${name}.${rate}`)
    }
    sum += probability
  }
  // Ten rates of 0.1 add up to a little more than 1.
  if (sum > 1 + 1e-9)
    throw invalid(`${name}: ${Object.keys(rates).join(', ')} must not exceed 1 in total: ${sum}`, name)
}

/** Throws `invalid` unless this is a range of durations. */
export function checkDelay(name: string, delay: DelayRange | undefined): void {
  if (delay === undefined) return
  const [from, to] = delay.map(millisecondsIn)
  if (!(from! <= to!))
    throw invalid(`${name}.delay must be from a shorter to a longer time, not ${delay}`, `${name}.delay`)
}

/** Draws a delay in whole milliseconds; 0 without a range. */
export function delayMsOf(delay: DelayRange | undefined, chance: Prng): number {
  if (delay === undefined) return 0
  const [from, to] = delay.map(millisecondsIn)
  return Math.floor(from!) + chance.below(Math.floor(to!) - Math.floor(from!) + 1)
}

/** Draws at most one of several exclusive faults. */
export function drawOne<Name extends string>(
  chance: Prng,
  rates: Readonly<Record<Name, number | undefined>>,
): Name | undefined {
  let remaining = chance.next()
  for (const [name, probability = 0] of Object.entries<number | undefined>(rates)) {
    if (remaining < probability) return name as Name
    remaining -= probability
  }
  return undefined
}
