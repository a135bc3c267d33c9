import { dateTimeOf, dateTimeText } from '../../src/wire/date-time.ts'
import { CliError, refusingUsage } from './failure.ts'

const UNIT_MS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const
/** RFC 3339 has four digits for the year. */
const END_OF_TIME_MS = Date.UTC(9999, 11, 31)

/** The expiry that `--expires-in` or `--expires-at` asks for as RFC 3339, null when neither does. */
export function expiryText(
  {
    expiresIn,
    expiresAt,
  }: { readonly expiresIn: string | undefined; readonly expiresAt: string | undefined },
  now: number,
): string | null {
  if (expiresIn !== undefined && expiresAt !== undefined) {
    throw new CliError(2, '--expires-in does not go with --expires-at')
  }
  if (expiresIn !== undefined)
    return dateTimeText(new Date(now + durationMs(expiresIn, END_OF_TIME_MS - now)))
  if (expiresAt === undefined) return null
  return dateTimeText(refusingUsage(() => dateTimeOf(expiresAt, '--expires-at')))
}

function durationMs(text: string, longest: number): number {
  const [, count, unit] = /^([0-9]{1,12})([smhd])$/.exec(text) ?? []
  const ms = count === undefined ? 0 : Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS]
  if (ms > 0 && ms <= longest) return ms
  throw new CliError(
    2,
    ms > longest
      ? '--expires-in must not reach beyond the year 9999'
      : '--expires-in must be a whole number above 0 with s, m, h or d, such as 90s, 15m, 24h or 30d',
  )
}
