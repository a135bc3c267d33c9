const UNITS = ['byte', 'kilobyte', 'megabyte', 'gigabyte', 'terabyte']

/** Formats a size, for example "12.3 MB". */
export function bytesText(bytes: number): string {
  const power = bytes < 1 ? 0 : Math.min(Math.floor(Math.log10(bytes) / 3), UNITS.length - 1)
  const value = bytes / 1000 ** power
  const format = { style: 'unit', unit: UNITS[power]!, maximumFractionDigits: value < 10 ? 1 : 0 } as const
  return new Intl.NumberFormat(undefined, format).format(value)
}
