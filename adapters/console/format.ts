/** Numbers with separators: `12,345`. */
export function formatCount(value: number): string {
  return value.toLocaleString('en-US')
}

/** `1 record`, `2 records`. */
export function plural(count: number, noun: string): string {
  return `${formatCount(count)} ${noun}${count === 1 ? '' : 's'}`
}

/** Bytes in binary units, to three digits: `1.5 MiB`. */
export function formatBytes(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']
  let value = bytes
  let unit = 0
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024
    unit++
  }
  return `${Number(value.toPrecision(value < 1000 ? 3 : 4))} ${units[unit]}`
}

const SMALLER_UNITS = { minute: /:\d\d\.\d+$/, second: /\.\d+$/, millisecond: /$^/ }

/**
 * Milliseconds since the Unix epoch as a local time: `2026-01-31 12:00:00.000`, or to the minute or second.
 * A number beyond the last date is shown as it is.
 */
export function formatTime(ms: number, unit: keyof typeof SMALLER_UNITS = 'millisecond'): string {
  const local = new Date(ms - new Date(ms).getTimezoneOffset() * 60_000)
  if (Number.isNaN(local.getTime())) return String(ms)
  // Years after 9999 have a sign and six digits.
  const time = local.toISOString().replace(/^\+0?/, '')
  return time.replace('T', ' ').slice(0, -1).replace(SMALLER_UNITS[unit], '')
}

/** Units of time in seconds, the longest first. */
const UNITS: readonly (readonly [seconds: number, noun: string])[] = [
  [86_400, 'day'],
  [3600, 'hour'],
  [60, 'minute'],
  [1, 'second'],
]

/** Seconds in the largest unit that they are a multiple of: `7 days`. */
export function formatDuration(seconds: number): string {
  const [unit, noun] = UNITS.find(([size]) => seconds % size === 0)!
  return `${seconds / unit} ${noun}${seconds === unit ? '' : 's'}`
}

/** The seconds of a text such as `7 days`, `1 hour` or `30s`; undefined if it is not such a text. */
export function secondsOf(text: string): number | undefined {
  const [, count, unit] = /^\s*(\d+)\s*([dhms]|(?:day|hour|minute|second)s?)\s*$/.exec(text) ?? []
  const [size] = UNITS.find(([, noun]) => noun[0] === unit?.[0]) ?? [0]
  const seconds = Number(count) * size
  return seconds > 0 && Number.isSafeInteger(seconds) ? seconds : undefined
}
