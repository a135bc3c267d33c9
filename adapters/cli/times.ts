import type { RetentionPolicy } from '../../src/index.ts'
import { integerArgument } from './command.ts'
import { CliError, quoteArg } from './errors.ts'

const UNIT_MS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const

/** Parses a positive duration, such as `90s` or `30d`, to milliseconds; undefined if it is none. */
export function durationMs(text: string): number | undefined {
  const [, count, unit] = /^([0-9]{1,12})([smhd])$/.exec(text) ?? []
  const ms = count === undefined ? 0 : Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS]
  return ms > 0 ? ms : undefined
}

/** Midnight of these days, in the time zone of the computer. */
const DAYS: Readonly<Record<string, number>> = { today: 0, yesterday: -1 }

/**
 * Parses a time: milliseconds since the Unix epoch, RFC 3339, `now`, `today`, `yesterday`, or a duration
 * before now such as `-15m` or `15m`. A date is midnight UTC, `today` and `yesterday` are local midnights.
 *
 * @throws CliError with exit code 2.
 */
export function timeArgument(text: string, name: string, now: number): number {
  if (/^\d+$/.test(text)) return integerArgument(text, name)
  if (text === 'now') return now
  if (Object.hasOwn(DAYS, text)) {
    const day = new Date(now)
    day.setDate(day.getDate() + DAYS[text]!)
    return day.setHours(0, 0, 0, 0)
  }
  const ago = durationMs(text.replace(/^-/, ''))
  if (ago !== undefined) return Math.max(0, now - ago)
  const time = /^\d{4}-\d{2}-\d{2}(T|$)/.test(text) ? Date.parse(text) : Number.NaN
  if (time >= 0) return time
  throw new CliError(
    2,
    `invalid ${name} ${quoteArg(text)}; it must be milliseconds, a time such as 2030-01-31T12:00:00Z, ` +
      'today, yesterday, or a duration before now such as -15m',
  )
}

const UNITS = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
] as const

/**
 * Parses the value of `--retention`: `forever` (or `infinite`), or a duration such as `30d`.
 *
 * @throws CliError with exit code 2.
 */
export function parseRetention(text: string): RetentionPolicy {
  if (text === 'forever' || text === 'infinite') return 'infinite'
  const ms = durationMs(text)
  if (ms !== undefined) return { ageSeconds: ms / 1000 }
  throw new CliError(
    2,
    `invalid retention ${quoteArg(text)}; \`--retention\` must be \`forever\`, or a positive integer ` +
      'with s, m, h or d, such as 30d',
  )
}

/** Returns the retention in the HTTP API. */
export function retentionForm(policy: RetentionPolicy): object {
  return policy === 'infinite' ? { infinite: {} } : { age: policy.ageSeconds }
}

/** Says how long records are kept: `forever`, or `30 days`. */
export function retentionPeriod(policy: RetentionPolicy): string {
  if (policy === 'infinite') return 'forever'
  const { ageSeconds } = policy
  const [noun, seconds] = UNITS.find(([, seconds]) => ageSeconds % seconds === 0)!
  const count = ageSeconds / seconds
  return `${count.toLocaleString('en-US')} ${noun}${count === 1 ? '' : 's'}`
}

/** Completes `kept ...`: `forever`, or `for 30 days`. */
export function retentionText(policy: RetentionPolicy): string {
  const period = retentionPeriod(policy)
  return policy === 'infinite' ? period : `for ${period}`
}
