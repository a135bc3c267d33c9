import { textOf, utf8 } from '../model/bytes.ts'
import type { Time } from '../model/validation.ts'
import { badJson, JsonNumber, JsonObject, type ParsedJson } from './json-reader.ts'

/**
 * Decodes a JSON value (docs/protocol.md "JSON"). Throws 400 `bad_json`, naming the member, for a value of
 * another type. Unknown members are ignored.
 */
export type Decoder<Value> = (value: ParsedJson, name: string) => Value

/** A member that may be absent but not null. */
export function optional<Value>(object: JsonObject, name: string, decode: Decoder<Value>): Value | undefined {
  const value = object.get(name)
  return value === undefined ? undefined : decode(value, name)
}

/** A member that may be absent or null, which is the same. */
export function nullable<Value>(object: JsonObject, name: string, decode: Decoder<Value>): Value | undefined {
  return threeState(object, name, decode) ?? undefined
}

/** A member of a PATCH: absent, null or a value (docs/protocol.md "Reconfiguring"). */
export function threeState<Value>(
  object: JsonObject,
  name: string,
  decode: Decoder<Value>,
): Value | null | undefined {
  return optional(object, name, (value) => (value === null ? null : decode(value, name)))
}

/** A member that must be present. */
export function required<Value>(object: JsonObject, name: string, decode: Decoder<Value>): Value {
  const value = object.get(name)
  if (value === undefined) throw badJson(`missing member \`${name}\``, name)
  return decode(value, name)
}

/** An object. */
export function objectOf(value: ParsedJson, name: string): JsonObject {
  if (value instanceof JsonObject) return value
  throw badJson(`\`${name}\` must be an object`, name)
}

/** An array. */
export function arrayOf(value: ParsedJson, name: string): readonly ParsedJson[] {
  if (isArray(value)) return value
  throw badJson(`\`${name}\` must be an array`, name)
}

/**
 * A string that may be a slice and keep the whole document in memory; use {@link keptStringOf} for one that
 * is stored.
 */
export function stringOf(value: ParsedJson, name: string): string {
  if (typeof value === 'string') return value
  throw badJson(`\`${name}\` must be a string`, name)
}

/** A copy of a short string, which shares no memory with the document. */
export function keptStringOf(value: ParsedJson, name: string): string {
  return textOf(utf8(stringOf(value, name)))!
}

/** A boolean. */
export function booleanOf(value: ParsedJson, name: string): boolean {
  if (typeof value === 'boolean') return value
  throw badJson(`\`${name}\` must be true or false`, name)
}

/**
 * An integer from 0 to 2^64 - 1. Integers beyond 2^53 - 1 have a valid form but cannot be represented
 * (docs/protocol.md "Numbers"): they become `Infinity`, which the validation of the model rejects with 422
 * `invalid`.
 */
export function integerOf(value: ParsedJson, name: string, bounds = '0 to 18446744073709551615'): number {
  if (typeof value === 'number') return value
  if (value instanceof JsonNumber && value.isUint64) return Number.POSITIVE_INFINITY
  throw badJson(`\`${name}\` must be an integer from ${bounds}`, name)
}

/** A decoder of one of several strings. */
export function enumOf<Value extends string>(allowed: readonly Value[]): Decoder<Value> {
  return (value, name) => {
    const found = allowed.find((candidate) => candidate === value)
    if (found === undefined) throw badJson(`\`${name}\` must be one of ${allowed.join(', ')}`, name)
    return found
  }
}

function isArray(value: ParsedJson): value is readonly ParsedJson[] {
  return Array.isArray(value)
}

const RFC_3339 =
  /^(\d{4})-(\d{2})-(\d{2})[Tt ](\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9})\d*)?(?:[Zz]|([+-])(\d{2}):(\d{2}))$/
/** Longer texts are rejected unread. */
const CHARACTERS_MAX = 64

/** RFC 3339 in UTC, without trailing zeros of the fraction (docs/protocol.md "Times"). */
export function dateTimeText(time: Time): string {
  return new Date(time).toISOString().replace(/\.?0+Z$/, 'Z')
}

/** Decodes RFC 3339 with any offset (docs/protocol.md "Times"), to the millisecond. Throws 400 `bad_json`. */
export const dateTimeOf: Decoder<Date> = (value, name) => {
  const date = parsed(stringOf(value, name))
  if (date === undefined) throw badJson(`\`${name}\` must be a date and time of RFC 3339`, name)
  return date
}

function parsed(text: string): Date | undefined {
  const match = text.length <= CHARACTERS_MAX ? RFC_3339.exec(text) : null
  if (match === null) return undefined
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ]
  const local = new Date(0)
  local.setUTCFullYear(year, month - 1, day)
  // `Date` turns a day that does not exist into another one.
  if (local.getUTCMonth() !== month - 1 || local.getUTCDate() !== day) return undefined
  const [offsetHour, offsetMinute] = [Number(match[9] ?? 0), Number(match[10] ?? 0)]
  // A leap second is read as the second after it.
  if (hour > 23 || minute > 59 || second > 60 || offsetHour > 23 || offsetMinute > 59) return undefined
  const milliseconds = Math.floor(Number(`0.${match[7] ?? 0}`) * 1000)
  local.setUTCHours(hour, minute, second, milliseconds)
  const offsetMs = (offsetHour * 60 + offsetMinute) * 60_000 * (match[8] === '-' ? -1 : 1)
  const date = new Date(local.getTime() - offsetMs)
  // An offset may lead to a year that RFC 3339 cannot represent.
  return date.getUTCFullYear() < 0 || date.getUTCFullYear() > 9999 ? undefined : date
}

/** Removes members that are undefined, for objects whose members are counted or stored. */
export function withoutUndefined<Shape extends object>(object: Shape): Shape {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as Shape
}

/** Returns undefined for an object without members. */
export function unlessEmpty<Shape extends object>(object: Shape | undefined): Shape | undefined {
  return object === undefined || Object.keys(object).length === 0 ? undefined : object
}
