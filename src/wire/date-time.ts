import { type Decoder, stringOf } from './json-members.ts'
import { badJson } from './json-values.ts'

const RFC_3339 =
  /^(\d{4})-(\d{2})-(\d{2})[Tt ](\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9})\d*)?(?:[Zz]|([+-])(\d{2}):(\d{2}))$/
/** Longer ones are not looked at. */
const CHARACTERS_MAX = 64

/** RFC 3339 in UTC, without trailing zeros of the fraction (wire-behaviour.md 1.8). */
export function dateTimeText(date: Date): string {
  return date.toISOString().replace(/\.?0+Z$/, 'Z')
}

/** RFC 3339 with any offset (wire-behaviour.md 7.5), to the millisecond. Throws 400 `bad_json`. */
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
  // What is no day of the calendar becomes another one.
  if (local.getUTCMonth() !== month - 1 || local.getUTCDate() !== day) return undefined
  const [offsetHour, offsetMinute] = [Number(match[9] ?? 0), Number(match[10] ?? 0)]
  // A leap second is read as the second after it.
  if (hour > 23 || minute > 59 || second > 60 || offsetHour > 23 || offsetMinute > 59) return undefined
  const milliseconds = Math.floor(Number(`0.${match[7] ?? 0}`) * 1000)
  local.setUTCHours(hour, minute, second, milliseconds)
  const offsetMs = (offsetHour * 60 + offsetMinute) * 60_000 * (match[8] === '-' ? -1 : 1)
  const date = new Date(local.getTime() - offsetMs)
  // An offset may lead out of what can be written.
  return date.getUTCFullYear() < 0 || date.getUTCFullYear() > 9999 ? undefined : date
}
