import { type Comparison, median } from './compare.ts'

/** A line of the table. */
export interface Row {
  readonly work: string
  readonly against: string
  readonly measured: string
  readonly demanded: string
  /** Undefined: for information. */
  readonly isMet: boolean | undefined
  /** What the ratio comes of. */
  readonly figures: string
}

/** How many times as fast as the rival, at least. `each` is what a figure is for, `count` of them are done in a round. */
export function speedRow(
  work: string,
  against: string,
  { ours, theirs, ratios }: Comparison,
  atLeast: number | undefined,
  { each, count }: { readonly each: string; readonly count: number },
): Row {
  const ratio = median(ratios)
  const spread = `${round(ratios[0]!)} to ${round(ratios.at(-1)!)}`
  const microseconds = [ours, theirs].map((time) => round((time * 1000) / count))
  return {
    work,
    against,
    measured: `${round(ratio)} (${spread})`,
    demanded: atLeast === undefined ? '' : `≥ ${atLeast}`,
    isMet: atLeast === undefined ? undefined : ratio >= atLeast,
    figures: `${microseconds[0]} µs ${each}, ${microseconds[1]} µs`,
  }
}

/** What must stay below a bound. */
export function boundRow(
  work: string,
  against: string,
  measured: number,
  { below, unit, figures }: { readonly below: number; readonly unit: string; readonly figures: string },
): Row {
  return {
    work,
    against,
    measured: `${round(measured)} ${unit}`.trim(),
    demanded: `< ${below} ${unit}`.trim(),
    isMet: measured < below,
    figures,
  }
}

/** Three digits that count. */
export function round(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3)
}

const HEADINGS = ['work', 'against', 'measured', 'demanded', '', 'headwater, rival'] as const

export function markdownOf(rows: readonly Row[]): string {
  const lines = rows.map(({ work, against, measured, demanded, isMet, figures }) => {
    const verdict = isMet === undefined ? '' : isMet ? 'met' : 'MISSED'
    return [work, against, measured, demanded, verdict, figures]
  })
  const widths = HEADINGS.map((heading, i) =>
    Math.max(3, heading.length, ...lines.map((line) => line[i]!.length)),
  )
  const lineOf = (cells: readonly string[]): string =>
    `| ${cells.map((cell, i) => cell.padEnd(widths[i]!)).join(' | ')} |`
  return [lineOf(HEADINGS), lineOf(widths.map((width) => '-'.repeat(width))), ...lines.map(lineOf)].join('\n')
}
