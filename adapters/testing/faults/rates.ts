import type { Prng } from '../../../src/storage/conformance/prng.ts'
import { durationMs } from '../duration.ts'
import type { DelayRange } from './chance.ts'

/** Throws `RangeError` for what nothing would come of, such as a misspelt name. */
export function checkNames(name: string, given: object, known: readonly string[]): void {
  const unknown = Object.keys(given).find((one) => !known.includes(one))
  if (unknown !== undefined) throw new RangeError(`${name} has no \`${unknown}\`: ${known.join(', ')}`)
}

/** Throws `RangeError`, naming the rate, unless these are probabilities that together are one. */
export function checkProbabilities(name: string, rates: Readonly<Record<string, number | undefined>>): void {
  let sum = 0
  for (const [rate, probability = 0] of Object.entries(rates)) {
    if (!(probability >= 0 && probability <= 1)) {
      throw new RangeError(`${name}.${rate} must be from 0 to 1, not ${probability}`)
    }
    sum += probability
  }
  // Ten rates of 0.1 add up to a little more than 1.
  if (sum > 1 + 1e-9)
    throw new RangeError(`${name}: ${Object.keys(rates).join(', ')} must be at most 1 together, not ${sum}`)
}

/** Throws `RangeError`, naming the rate, unless this is a range of durations. */
export function checkDelay(name: string, delay: DelayRange | undefined): void {
  if (delay === undefined) return
  const [from, to] = delay.map(durationMs)
  if (!(from! <= to!))
    throw new RangeError(`${name}.delay must be from a shorter to a longer time, not ${delay}`)
}

/** Whole milliseconds, evenly; 0 where there is no delay. */
export function delayMsOf(delay: DelayRange | undefined, chance: Prng): number {
  if (delay === undefined) return 0
  const [from, to] = delay.map(durationMs)
  return Math.floor(from!) + chance.below(Math.floor(to!) - Math.floor(from!) + 1)
}

/** The first of these that comes about, if one does; exclusive of each other. */
export function drawn<Name extends string>(
  chance: Prng,
  rates: Readonly<Record<Name, number | undefined>>,
): Name | undefined {
  let left = chance.next()
  for (const [name, probability = 0] of Object.entries<number | undefined>(rates)) {
    if (left < probability) return name as Name
    left -= probability
  }
  return undefined
}
