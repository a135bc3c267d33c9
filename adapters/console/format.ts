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

/** A time of the local time zone to the millisecond: `2026-01-31 12:00:00.000`. */
export function formatTime(ms: number): string {
  const date = new Date(ms)
  if (Number.isNaN(date.getTime())) return String(ms)
  const pad = (value: number, digits = 2) => String(value).padStart(digits, '0')
  const day = `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`
  const time = `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`
  return `${day} ${time}.${pad(date.getMilliseconds(), 3)}`
}

/** The local time of a date, to the minute. */
export function formatDate(date: Date): string {
  return formatTime(date.getTime()).slice(0, 16)
}

/** Units of time in seconds, the longest first. */
export const DURATION_UNITS: readonly (readonly [seconds: number, noun: string])[] = [
  [86_400, 'day'],
  [3600, 'hour'],
  [60, 'minute'],
  [1, 'second'],
]
