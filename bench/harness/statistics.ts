export function median(values: readonly number[]): number {
  const ascending = [...values].sort((a, b) => a - b)
  const middle = ascending.length >> 1
  return ascending.length % 2 === 1 ? ascending[middle]! : (ascending[middle - 1]! + ascending[middle]!) / 2
}

/** Three significant digits. */
export function round(value: number): string {
  if (value >= 100) return value.toFixed(0)
  return value === 0 ? '0' : value.toPrecision(3)
}

export function duration(ms: number): string {
  if (ms >= 1_000) return `${round(ms / 1_000)} s`
  return ms >= 1 ? `${round(ms)} ms` : `${round(ms * 1_000)} µs`
}

export function memorySize(bytes: number): string {
  return bytes >= 1_048_576 ? `${round(bytes / 1_048_576)} MiB` : `${round(bytes / 1_024)} KiB`
}
