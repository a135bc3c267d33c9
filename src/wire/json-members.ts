import { textOf, utf8 } from '../model/bytes.ts'
import { badJson, JsonNumber, JsonObject, type ParsedJson } from './json-values.ts'

/**
 * Decoders of JSON values and members (wire-behaviour.md 1.6). Each throws 400 `bad_json` for a value of another type, naming it.
 * Members that nobody asks for are ignored.
 */
export type Decoder<Value> = (value: ParsedJson, name: string) => Value

/** A member that may be left out but not be null. */
export function optional<Value>(object: JsonObject, name: string, decode: Decoder<Value>): Value | undefined {
  const value = object.get(name)
  return value === undefined ? undefined : decode(value, name)
}

/** A member that may be left out or be null, which is the same. */
export function nullable<Value>(object: JsonObject, name: string, decode: Decoder<Value>): Value | undefined {
  return threeState(object, name, decode) ?? undefined
}

/** A member of a PATCH: left out, null or a value (wire-behaviour.md 8.5). */
export function threeState<Value>(
  object: JsonObject,
  name: string,
  decode: Decoder<Value>,
): Value | null | undefined {
  return optional(object, name, (value) => (value === null ? null : decode(value, name)))
}

export function required<Value>(object: JsonObject, name: string, decode: Decoder<Value>): Value {
  const value = object.get(name)
  if (value === undefined) throw badJson(`missing member \`${name}\``, name)
  return decode(value, name)
}

export function objectOf(value: ParsedJson, name: string): JsonObject {
  if (value instanceof JsonObject) return value
  throw badJson(`\`${name}\` must be an object`, name)
}

export function arrayOf(value: ParsedJson, name: string): readonly ParsedJson[] {
  if (isArray(value)) return value
  throw badJson(`\`${name}\` must be an array`, name)
}

/** The string may be a slice that keeps the whole document alive; {@link keptStringOf} is for those that are stored. */
export function stringOf(value: ParsedJson, name: string): string {
  if (typeof value === 'string') return value
  throw badJson(`\`${name}\` must be a string`, name)
}

/** A short string that may be kept for long: a copy, which shares no memory with the document. */
export function keptStringOf(value: ParsedJson, name: string): string {
  return textOf(utf8(stringOf(value, name)))!
}

export function booleanOf(value: ParsedJson, name: string): boolean {
  if (typeof value === 'boolean') return value
  throw badJson(`\`${name}\` must be true or false`, name)
}

/**
 * An integer from 0 to 2^64 - 1. Those beyond 2^53 - 1 have a right shape but cannot be held (rulings.md "Numbers"): they become
 * `Infinity`, which every validation of the model refuses with 422 `invalid` and the limit, in the order in which it checks.
 */
export function integerOf(value: ParsedJson, name: string): number {
  if (typeof value === 'number') return value
  if (value instanceof JsonNumber && value.isUint64) return Number.POSITIVE_INFINITY
  throw badJson(`\`${name}\` must be an integer from 0 to 18446744073709551615`, name)
}

/** A decoder of one of several strings. */
export function oneOf<Value extends string>(allowed: readonly Value[]): Decoder<Value> {
  return (value, name) => {
    const found = allowed.find((candidate) => candidate === value)
    if (found === undefined) throw badJson(`\`${name}\` must be one of ${allowed.join(', ')}`, name)
    return found
  }
}

function isArray(value: ParsedJson): value is readonly ParsedJson[] {
  return Array.isArray(value)
}
