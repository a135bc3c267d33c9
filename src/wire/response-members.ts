import { wrongType } from './response-json.ts'

export function responseArrayOf(value: unknown, name: string): readonly unknown[] {
  if (Array.isArray(value)) return value
  throw wrongType(name, 'an array')
}

export function textOfJson(value: unknown, name: string): string {
  if (typeof value === 'string') return value
  throw wrongType(name, 'a string')
}

export function booleanOfJson(value: unknown, name: string): boolean {
  if (typeof value === 'boolean') return value
  throw wrongType(name, 'true or false')
}

export function choiceOf<Choice extends string>(
  value: unknown,
  name: string,
  choices: readonly Choice[],
): Choice {
  if (choices.includes(value as Choice)) return value as Choice
  throw wrongType(name, `one of ${choices.join(', ')}`)
}

/** A date and time. */
export function dateOf(value: unknown, name: string): Date {
  const date = new Date(textOfJson(value, name))
  if (Number.isFinite(date.getTime())) return date
  throw wrongType(name, 'a date and time')
}

/** A member that may be absent or null. */
export function unlessNull<Value>(value: unknown, decode: (value: unknown) => Value): Value | undefined {
  return value === undefined || value === null ? undefined : decode(value)
}
