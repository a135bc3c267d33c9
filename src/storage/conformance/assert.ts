import { StorageConflict, StorageFailure, type StorageFailureKind } from '../errors.ts'

/** Fails a test of the suite unless the condition holds. */
export function ok(condition: boolean, message: string): asserts condition {
  if (!condition) throw new Error(message)
}

/** Fails unless both are the same by value: primitives, arrays, byte arrays and plain objects. */
export function equal(actual: unknown, expected: unknown, what: string): void {
  if (!same(actual, expected)) throw new Error(`${what}: expected ${show(expected)}, got ${show(actual)}`)
}

/** Fails unless the promise rejects with `StorageConflict`. */
export async function conflicts(promise: Promise<unknown>, what: string): Promise<void> {
  const error = await rejection(promise, what)
  ok(StorageConflict.is(error), `${what}: expected StorageConflict, got ${show(error)}`)
}

/** Fails unless the promise rejects with a `StorageFailure` of the kind. */
export async function fails(
  promise: Promise<unknown>,
  kind: StorageFailureKind,
  what: string,
): Promise<StorageFailure> {
  const error = await rejection(promise, what)
  ok(StorageFailure.is(error), `${what}: expected StorageFailure, got ${show(error)}`)
  equal(error.kind, kind, `${what}: kind of the failure`)
  return error
}

/** How many of the promises fulfil; every other must reject with `StorageConflict`. */
export async function winners(promises: readonly Promise<unknown>[], what: string): Promise<number[]> {
  const won: number[] = []
  for (const [index, result] of (await Promise.allSettled(promises)).entries()) {
    if (result.status === 'fulfilled') won.push(index)
    else
      ok(StorageConflict.is(result.reason), `${what}: expected StorageConflict, got ${show(result.reason)}`)
  }
  return won
}

async function rejection(promise: Promise<unknown>, what: string): Promise<unknown> {
  try {
    await promise
  } catch (error) {
    return error
  }
  throw new Error(`${what}: expected a rejection, but it fulfilled`)
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
