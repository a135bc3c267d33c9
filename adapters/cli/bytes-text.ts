const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB']

/** A number of bytes for people: `512 B`, `1.5 MiB`. */
export function bytesText(bytes: number): string {
  let value = bytes
  let unit = 0
  // Not 1,024: what would be rounded to it belongs to the next unit.
  while (value >= 1023.95 && unit < UNITS.length - 1) {
    value /= 1024
    unit++
  }
  return `${unit === 0 ? Math.round(value) : value.toFixed(1)} ${UNITS[unit]}`
}
