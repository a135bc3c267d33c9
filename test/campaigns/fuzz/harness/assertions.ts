import { inspect } from 'node:util'

/**
 * Throws unless the two are equal. A `Buffer` equals its bytes, and an undefined member equals an absent one.
 */
export function equal(actual: unknown, expected: unknown, description: string): void {
  if (!isEqual(actual, expected))
    throw new Error(`${description}: ${shown(actual)} is not ${shown(expected)}`)
}

export function ok(condition: boolean, description: string): void {
  if (!condition) throw new Error(description)
}

function isEqual(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (a instanceof Uint8Array || b instanceof Uint8Array) return isEqualBytes(a, b)
  if (a instanceof Date || b instanceof Date) return isEqualTimes(a, b)
  if (Array.isArray(a) !== Array.isArray(b)) return false
  const [ofA, ofB] = [a as Record<string, unknown>, b as Record<string, unknown>]
  if (Array.isArray(a) && a.length !== (b as unknown[]).length) return false
  for (const name of Object.keys(ofA)) if (!isEqual(ofA[name], ofB[name])) return false
  for (const name of Object.keys(ofB)) if (ofB[name] !== undefined && !(name in ofA)) return false
  return true
}

function isEqualBytes(a: object, b: object): boolean {
  if (!(a instanceof Uint8Array && b instanceof Uint8Array) || a.length !== b.length) return false
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false
  return true
}

function isEqualTimes(a: object, b: object): boolean {
  return a instanceof Date && b instanceof Date && a.getTime() === b.getTime()
}

function shown(value: unknown): string {
  return inspect(value, { depth: 6, breakLength: Number.POSITIVE_INFINITY }).slice(0, 1000)
}

/** Throws unless every number in the value is an integer from 0 to 2^53 - 1. */
export function checkNumbers(value: unknown): void {
  if (typeof value === 'number') {
    if (!Number.isSafeInteger(value) || value < 0) throw new Error(`it gives the number ${value}`)
  } else if (typeof value === 'object' && value !== null && !ArrayBuffer.isView(value)) {
    for (const member of Object.values(value)) checkNumbers(member)
  }
}

/** The outcome of a call. */
export type Outcome<Value> = { readonly value: Value } | { readonly error: unknown }

/** Returns the outcome of a call. Of two decoders that are compared, both may reject an input. */
export function outcomeOf<Value>(call: () => Value): Outcome<Value> {
  try {
    return { value: call() }
  } catch (error) {
    return { error }
  }
}

export async function settledOutcomeOf<Value>(call: () => Promise<Value>): Promise<Outcome<Value>> {
  try {
    return { value: await call() }
  } catch (error) {
    return { error }
  }
}
