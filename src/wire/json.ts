import { textOf as decodedText } from '../model/bytes.ts'
import { HeadwaterError } from '../model/errors.ts'
import { INTEGER_MAX } from '../model/limits.ts'
import type { Time } from '../model/validation.ts'

/**
 * A message without the form that the protocol gives it. To the client of a server it is 400 `bad_json`; a
 * client that receives one turns it into the error of an unexpected response.
 */
export class Malformed extends HeadwaterError {
  /** @param field The member that is to blame. */
  constructor(problem: string, field?: string, cause?: unknown) {
    super('bad_json', problem, {
      ...(field !== undefined && { field }),
      ...(cause !== undefined && { cause }),
    })
  }
}

/** A JSON object: members that are absent are undefined. */
export type JsonObject = Readonly<Record<string, unknown>>

/** Only an escape can contain a lone surrogate: the text of a document comes from UTF-8. */
const ESCAPED_SURROGATE = /\\u[dD][89a-fA-F]/

/**
 * Parses a JSON document. Throws {@link Malformed} for what is no JSON, and for lone surrogates, which UTF-8
 * cannot represent.
 *
 * `JSON.parse` rounds integers beyond 2^53 - 1, but never to a smaller one, so that {@link integerOf} notices
 * them. It takes the last of several members with the same name.
 */
export function parseJson(text: string): unknown {
  try {
    // Few texts have escapes, and searching for one is several times as fast as the expression.
    const mayHaveSurrogates = text.includes('\\u') && ESCAPED_SURROGATE.test(text)
    return JSON.parse(text, mayHaveSurrogates ? refuseLoneSurrogate : undefined)
  } catch (error) {
    if (error instanceof Malformed) throw error
    throw new Malformed('invalid JSON', undefined, error)
  }
}

function refuseLoneSurrogate(_name: string, value: unknown): unknown {
  if (typeof value === 'string' && !value.isWellFormed()) {
    throw new Malformed('invalid JSON: a string has a lone surrogate')
  }
  return value
}

/** Parses a JSON document in UTF-8. Throws {@link Malformed}. Takes memory in proportion to its length. */
export function readJson(bytes: Uint8Array): unknown {
  const text = decodedText(bytes)
  if (text === undefined) throw new Malformed('invalid JSON: not UTF-8')
  return parseJson(text)
}

/** Reads a value. Throws {@link Malformed}, naming the member, for one of another form. */
export type Reader<Value> = (value: unknown, name: string, rules?: ReadRules) => Value

export const objectOf: Reader<JsonObject> = (value, name) => {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as JsonObject
  throw new Malformed(`\`${name}\` must be an object`, name)
}

export const arrayOf: Reader<readonly unknown[]> = (value, name) => {
  if (Array.isArray(value)) return value
  throw new Malformed(`\`${name}\` must be an array`, name)
}

export const stringOf: Reader<string> = (value, name) => {
  if (typeof value === 'string') return value
  throw new Malformed(`\`${name}\` must be a string`, name)
}

export const booleanOf: Reader<boolean> = (value, name) => {
  if (typeof value === 'boolean') return value
  throw new Malformed(`\`${name}\` must be true or false`, name)
}

/** An integer from 0 to 2^53 - 1. */
export const safeIntegerOf: Reader<number> = (value, name) => {
  if (Number.isSafeInteger(value) && (value as number) >= 0) return value as number
  throw new Malformed(`\`${name}\` must be an integer from 0 to 2^53 - 1`, name)
}

/** 2^64 - 1 is rounded to this. */
const UINT64_LIMIT = 2 ** 64

/**
 * A reader of an integer from 0 to 2^64 - 1, whose error names other bounds. One beyond 2^53 - 1 has a valid
 * form but cannot be represented (docs/protocol.md "Numbers"): it becomes `Infinity`, which the validation of
 * the model rejects with 422.
 */
export function integerFrom(bounds: string): Reader<number> {
  return (value, name) => {
    if (!Number.isInteger(value) || (value as number) < 0 || (value as number) > UINT64_LIMIT) {
      throw new Malformed(`\`${name}\` must be an integer from ${bounds}`, name)
    }
    return (value as number) <= INTEGER_MAX ? (value as number) : Number.POSITIVE_INFINITY
  }
}

export const integerOf: Reader<number> = integerFrom('0 to 18446744073709551615')

export function oneOf<Choice extends string>(choices: readonly Choice[]): Reader<Choice> {
  return (value, name) => {
    if (choices.includes(value as Choice)) return value as Choice
    throw new Malformed(`\`${name}\` must be one of ${choices.join(', ')}`, name)
  }
}

/** A reader of a string without a problem. */
export function nameOf(problemOf: (name: string) => string | undefined): Reader<string> {
  return (value, name) => {
    const text = stringOf(value, name)
    const problem = problemOf(text)
    if (problem !== undefined) throw new Malformed(problem, name)
    return text
  }
}

export function required<Value>(object: JsonObject, name: string, read: Reader<Value>): Value {
  const value = object[name]
  if (value === undefined) throw missing(name)
  return read(value, name)
}

function missing(name: string): Malformed {
  return new Malformed(`missing member \`${name}\``, name)
}

/** A member that may be absent but not null. */
export function optional<Value>(object: JsonObject, name: string, read: Reader<Value>): Value | undefined {
  const value = object[name]
  return value === undefined ? undefined : read(value, name)
}

/** A member that may be absent or null, which is the same. */
export function nullable<Value>(object: JsonObject, name: string, read: Reader<Value>): Value | undefined {
  const value = object[name]
  return value === undefined || value === null ? undefined : read(value, name)
}

/** How a value is read and written. A reader alone is the form of a value that JSON has. */
export type Form<Value> = Reader<Value> | TwoWay<Value>

/** A value that JSON represents by another one. */
export interface TwoWay<Value> {
  /** Undefined is the same as an absent member. */
  read(value: unknown, name: string, rules: ReadRules): Value | undefined
  /** Returns what `JSON.stringify` takes. Members that are unset become `unset`. */
  write(value: Value, unset: null | undefined): unknown
}

/** How the members of an object are read. */
export interface ReadRules {
  /** Whether null clears a setting, as in a PATCH. Otherwise it means that the member is absent. */
  readonly nullClears?: boolean
  /** Whether unknown members are rejected. Otherwise they are ignored. */
  readonly knownOnly?: boolean
}

export interface Field<Value> {
  readonly form: Form<Value>
  /** The name in JSON; the name in the library in snake case by default. Two members may share one. */
  readonly name?: string
  /** An earlier name, which is also written, and read if the other one is absent. */
  readonly alias?: string
  /** Whether the member must be present, and not null. */
  readonly required?: boolean
  /** The value of an absent member. By default, it is absent in the library too. */
  readonly absent?: Value | null
  /** Whether null is allowed and means that the member is absent. True by default. */
  readonly nullable?: boolean
  /** Whether null in a PATCH clears the setting, instead of keeping it. True by default. */
  readonly clearable?: boolean
}

/** The members of an object, by their names in the library. */
type Fields<Shape> = {
  readonly [Name in keyof Shape]-?: Form<NonNullable<Shape[Name]>> | Field<NonNullable<Shape[Name]>>
}

export interface ObjectForm<Shape> extends TwoWay<Shape> {
  read(value: unknown, name: string, rules?: ReadRules): Shape
  write(value: Shape, unset: null | undefined): JsonObject
  readonly of: (value: unknown) => Shape
  /** Encodes a value for a response: members that are unset are null. */
  readonly text: (value: Shape) => string
  /** Encodes a value for a request: members that are unset are absent. */
  readonly requestText: (value: Shape) => string
}

/**
 * The form of an object: one table of fields for both directions, in the order of the members in JSON. `what`
 * names an object that is a message in errors.
 */
export function objectForm<Shape extends object>(fields: Fields<Shape>, what = 'body'): ObjectForm<Shape> {
  const members = Object.entries<Form<unknown> | Field<unknown>>(fields).map(([key, given]) => {
    const field = 'form' in given ? given : { form: given }
    return { key, name: snakeCase(key), ...field, form: twoWay(field.form) }
  })
  const names = members.map(({ name }) => name)
  const form: Pick<ObjectForm<Shape>, 'read' | 'write'> = {
    read(value, name, rules = {}) {
      const object = objectOf(value, name)
      if (rules.knownOnly) refuseUnknown(object, names)
      const result: Record<string, unknown> = {}
      for (const { key, name, alias, form, required, absent, nullable, clearable } of members) {
        const member = object[name] ?? (alias === undefined ? object[name] : object[alias])
        if (member === undefined && required) throw missing(name)
        const isUnset = member === null && !required && (rules.nullClears || nullable !== false)
        if (isUnset && rules.nullClears && clearable !== false) result[key] = null
        else if (member === undefined || isUnset) {
          if (absent !== undefined) result[key] = absent
        } else {
          const read = form.read(member, name, rules)
          if (read !== undefined) result[key] = read
        }
      }
      return result as Shape
    },
    write(value, unset) {
      const result: Record<string, unknown> = {}
      for (const { key, name, alias, form, clearable } of members) {
        const member = (value as Record<string, unknown>)[key]
        if (member !== undefined && member !== null) {
          const written = form.write(member, unset)
          if (alias !== undefined) result[alias] = written
          result[name] = written
        } else if (result[name] === undefined) {
          result[name] = member === null && clearable !== false ? null : unset
        }
      }
      return result
    },
  }
  return messageForm(form, what)
}

function twoWay<Value>(form: Form<Value>): TwoWay<Value> {
  return typeof form === 'function' ? { read: form, write: (value) => value } : form
}

/** The form of a message that is an object. */
export function messageForm<Shape>(
  { read, write }: Pick<ObjectForm<Shape>, 'read' | 'write'>,
  what = 'body',
): ObjectForm<Shape> {
  return {
    read,
    write,
    of: (value) => read(value, what),
    text: (value) => JSON.stringify(write(value, null)),
    requestText: (value) => JSON.stringify(write(value, undefined)),
  }
}

/** The form of an object inside of another one: without members it is unset, except in a PATCH. */
export function nested<Shape extends object>(inner: ObjectForm<Shape>): TwoWay<Shape> {
  return {
    read(value, name, rules) {
      const shape = inner.read(value, name, rules)
      return rules.nullClears || Object.keys(shape).length > 0 ? shape : undefined
    },
    write(value, unset) {
      const isSet = Object.values(value).some((member) => member !== undefined)
      return isSet || unset === undefined ? inner.write(value, unset) : unset
    },
  }
}

export function listOf<Item>(item: Form<Item>): TwoWay<readonly Item[]> {
  const { read, write } = twoWay(item)
  return {
    read: (value, name, rules) => arrayOf(value, name).map((one) => read(one, name, rules) as Item),
    write: (items, unset) => items.map((one) => write(one, unset)),
  }
}

/** The name on the wire of a member of the library: `seq_num` of `seqNum`. */
export function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

/** The name in the library of a member on the wire: `seqNum` of `seq_num`. */
export function camelCase(name: string): string {
  return name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
}

const NAME_LENGTH_SHOWN = 40

function refuseUnknown(object: JsonObject, names: readonly string[]): void {
  const unknown = Object.keys(object).find((name) => !names.includes(name))
  if (unknown === undefined) return
  throw new Malformed(`unknown member \`${unknown.slice(0, NAME_LENGTH_SHOWN)}\``, unknown)
}

const RFC_3339 = /^(\d{4}-\d\d-(\d\d))[Tt ](\d\d:\d\d):(\d\d)(\.\d+)?([Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/
/** Longer texts are rejected unread. */
const TIME_LENGTH_MAX = 64

/** RFC 3339 in UTC, without trailing zeros of the fraction (docs/protocol.md "Times"). */
export function timeText(time: Time): string {
  return new Date(time).toISOString().replace(/\.?0+Z$/, 'Z')
}

/** A date and time of RFC 3339 with any offset (docs/protocol.md "Times"), to the millisecond. */
export const timeOf: Reader<Date> = (value, name) => {
  const time = parsedTime(stringOf(value, name))
  if (time === undefined) throw new Malformed(`\`${name}\` must be a date and time of RFC 3339`, name)
  return time
}

function parsedTime(text: string): Date | undefined {
  const match = text.length <= TIME_LENGTH_MAX ? RFC_3339.exec(text) : null
  if (match === null) return undefined
  const [, date, day, minute, second, fraction = '', offset = ''] = match
  // A leap second is read as the second after it.
  const isLeap = second === '60'
  const local = `${date}T${minute}:${isLeap ? '59' : second}${fraction.slice(0, 4)}`
  // `Date` turns a day that does not exist into another one.
  if (new Date(`${local}Z`).getUTCDate() !== Number(day)) return undefined
  const time = new Date(Date.parse(`${local}${offset.toUpperCase()}`) + (isLeap ? 1000 : 0))
  // An offset may lead to a year that RFC 3339 cannot represent.
  return time.getUTCFullYear() < 0 || time.getUTCFullYear() > 9999 ? undefined : time
}

export const TIME: TwoWay<Date> = { read: timeOf, write: timeText }
