import { StorageConflict, StorageFailure, type StorageFailureKind } from '../../src/storage/errors.ts'

/** Throws unless the condition holds. */
export function ok(condition: boolean, message: string): asserts condition {
  if (!condition) throw new Error(message)
}

/** Throws unless both are equal by value: primitives, arrays, byte arrays and plain objects. */
export function equal(actual: unknown, expected: unknown, description: string): void {
  if (!same(actual, expected))
    throw new Error(`${description}: expected ${show(expected)}, got ${show(actual)}`)
}

/** Throws unless the promise rejects with `StorageConflict`. */
export async function conflicts(promise: Promise<unknown>, description: string): Promise<void> {
  const error = await rejection(promise, description)
  ok(StorageConflict.is(error), `${description}: expected StorageConflict, got ${show(error)}`)
}

/** Throws unless the promise rejects with a `StorageFailure` of the kind. */
export async function fails(
  promise: Promise<unknown>,
  kind: StorageFailureKind,
  description: string,
): Promise<StorageFailure> {
  const error = await rejection(promise, description)
  ok(StorageFailure.is(error), `${description}: expected StorageFailure, got ${show(error)}`)
  equal(error.kind, kind, `${description}: kind of the failure`)
  return error
}

/**
 * Returns the indexes of the promises that fulfil. Throws unless the others reject with `StorageConflict`.
 */
export async function winners(promises: readonly Promise<unknown>[], description: string): Promise<number[]> {
  const won: number[] = []
  for (const [index, result] of (await Promise.allSettled(promises)).entries()) {
    if (result.status === 'fulfilled') won.push(index)
    else
      ok(
        StorageConflict.is(result.reason),
        `${description}: expected StorageConflict, got ${show(result.reason)}`,
      )
  }
  return won
}

async function rejection(promise: Promise<unknown>, description: string): Promise<unknown> {
  try {
    await promise
  } catch (error) {
    return error
  }
  throw new Error(`${description}: expected a rejection, but it fulfilled`)
}

function same(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (a instanceof Uint8Array || b instanceof Uint8Array) {
    if (!(a instanceof Uint8Array && b instanceof Uint8Array) || a.length !== b.length) return false
    return a.every((byte, index) => byte === b[index])
  }
  if (Array.isArray(a) !== Array.isArray(b)) return false
  const members = Object.keys(a)
  return (
    members.length === Object.keys(b).length &&
    members.every((name) => Object.hasOwn(b, name) && same(Reflect.get(a, name), Reflect.get(b, name)))
  )
}

const SHOWN_CHARACTERS_MAX = 400

function show(value: unknown): string {
  if (value instanceof Error) return `${value.name}: ${value.message}`
  const text = JSON.stringify(value, (_, member) =>
    member instanceof Uint8Array ? `bytes(${member.length})` : member,
  )
  if (text === undefined) return String(value)
  return text.length > SHOWN_CHARACTERS_MAX ? `${text.slice(0, SHOWN_CHARACTERS_MAX)}...` : text
}
