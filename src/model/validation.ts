import { type HeadwaterError, invalid } from './errors.ts'
import { INTEGER_MAX } from './limits.ts'

/** A point in time: a `Date`, or milliseconds since the Unix epoch. */
export type Time = Date | number

/** Throws `invalid` unless the value is an integer from 0 to 2^53 - 1. */
export function assertInteger(value: unknown, field: string): void {
  if (!Number.isSafeInteger(value) || (value as number) < 0) {
    throw invalid(`\`${field}\` must be an integer from 0 to ${INTEGER_MAX}`, field)
  }
}

export function assertText(value: unknown, field: string): void {
  if (typeof value !== 'string') throw invalid(`\`${field}\` must be a string`, field)
}

/** A time as milliseconds since the Unix epoch. An invalid `Date` is NaN, which every check rejects. */
export function millisecondsOf(time: Time): number {
  // Not `instanceof`: a `Date` may come from another realm, such as another frame of a page.
  return typeof time === 'number' ? time : typeof time?.getTime === 'function' ? time.getTime() : Number.NaN
}

/** Throws `invalid` unless the value is a time from 1970 on, in whole milliseconds. */
export function assertTime(value: unknown, field: string): void {
  assertInteger(millisecondsOf(value as Time), field)
}

/** Throws `invalid` unless the value is valid. */
export type Check = (value: unknown, field: string) => void

/** The rule for the value of a member: a type, the members of an object, or a function that checks it. */
export type Rule = 'string' | 'number' | 'boolean' | 'function' | Members | Check

/** The allowed members of an object. All are optional here; whether one is required is checked elsewhere. */
export interface Members {
  readonly [name: string]: Rule
}

/** The rules of every member of a type, so that none is forgotten. */
export type MembersOf<Input> = { readonly [Name in keyof Required<Input>]: Rule }

/** Settings that may be left out. */
export type Settable<Settings> = { readonly [Name in keyof Settings]?: Settings[Name] | undefined }

/** Settings that may be left out, or null. */
export type Clearable<Settings> = { readonly [Name in keyof Settings]?: Settings[Name] | null | undefined }

const TYPE_NAMES = {
  string: 'a string',
  number: 'a number',
  boolean: 'true or false',
  function: 'a function',
}

/**
 * Throws `invalid` unless the value is an object with these members only, and each that is not undefined is
 * valid. `what` names the object in messages, such as `query`; `path` precedes the names of its members, such
 * as `limits.`, and is empty for an argument.
 */
export function assertMembers(value: unknown, members: Members, what: string, path = ''): void {
  // Not `Object.prototype`: the object may come from another realm.
  const prototype = typeof value === 'object' && value !== null ? Object.getPrototypeOf(value) : undefined
  const isPlain = prototype === null || (prototype && Object.getPrototypeOf(prototype) === null)
  if (!isPlain && !hasMember(value, members)) throw invalid(`\`${what}\` must be a plain object`, what)
  for (const name in value as object) {
    const field = path + name
    const rule = Object.hasOwn(members, name) ? members[name]! : undefined
    if (rule === undefined) throw unknownMember(field, members)
    const member = (value as Readonly<Record<string, unknown>>)[name]
    if (member === undefined) continue
    if (typeof rule === 'function') rule(member, field)
    else if (typeof rule === 'object') assertMembers(member, rule, field, `${field}.`)
    else if (typeof member !== rule) throw invalid(`\`${field}\` must be ${TYPE_NAMES[rule]}`, field)
  }
}

/** Throws `invalid` as {@link assertMembers} does. */
export function assertOptions(options: unknown, members: Members): void {
  assertMembers(options, members, 'options')
}

/** The error for a member that an object does not have, with those that it may have. */
export function unknownMember(field: string, members: object, hint = ''): HeadwaterError {
  const names = Object.keys(members).map((name) => `\`${name}\``)
  const shown = field.slice(0, 80)
  return invalid(`unknown member \`${shown}\`; expected ${names.join(', ')}${hint}`, shown)
}

/** Whether an object that is not plain, such as a class instance, was meant to have these members. */
function hasMember(value: unknown, members: Members): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  return Object.keys(members).some((name) => name in value)
}

/** The rule of an object none of whose members may be left out. */
export function complete(members: Readonly<Record<string, Check>>): Check {
  return (value, field) => {
    assertMembers(value, members, field, `${field}.`)
    const given = value as Readonly<Record<string, unknown>>
    for (const [name, check] of Object.entries(members)) check(given[name], `${field}.${name}`)
  }
}

export function orNull(rule: Rule): Check {
  return (value, field) => {
    if (value !== null) assertMembers({ [field]: value }, { [field]: rule }, field)
  }
}

/** A rule that allows some values. */
export function oneOf(allowed: readonly unknown[]): Check {
  return (value, field) => {
    if (!allowed.includes(value)) throw invalid(`\`${field}\` must be one of ${allowed.join(', ')}`, field)
  }
}

export function listOf(rule: Check): Check {
  return (value, field) => {
    if (!Array.isArray(value)) throw invalid(`\`${field}\` must be an array`, field)
    for (const [index, element] of value.entries()) rule(element, `${field}[${index}]`)
  }
}

/** The rule of an object that is known by one of its methods. */
export function hasMethod(method: string, what: string): Check {
  return (value, field) => {
    if (typeof Object(value)[method] === 'function') return
    throw invalid(`\`${field}\` must be ${what}${mistakeIn(value)}`, field)
  }
}

/** Explains a value in place of an object: a function that was not called, a promise that was not awaited. */
export function mistakeIn(value: unknown): string {
  if (typeof value === 'function') return '; got the function itself: call it'
  return typeof Object(value).then === 'function' ? '; got a Promise: await it' : ''
}

/** The rule of an `AbortSignal` of any realm. */
export const assertSignal: Check = (value, field) => {
  const { aborted, addEventListener } = Object(value) as Partial<AbortSignal>
  if (typeof aborted !== 'boolean' || typeof addEventListener !== 'function') {
    throw invalid(`\`${field}\` must be an AbortSignal`, field)
  }
}

/** The rule of a member that is checked where it is used. */
export const unchecked: Check = () => {}

/**
 * Returns a copy of what a call was given, which its caller may change while the call waits. What cannot be
 * copied, such as a function, is returned as it is, and rejected when it is validated.
 */
export function ownCopy<Value>(value: Value): Value {
  try {
    return structuredClone(value)
  } catch {
    return value
  }
}
