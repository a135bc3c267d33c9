import type { Samples } from './measure.ts'
import type { Measurement, Quantity, Rival } from './measurement.ts'
import { duration, median, memorySize, round } from './statistics.ts'

/** A row of the table. */
export interface Row {
  readonly name: string
  readonly work: string
  readonly against: string
  /** Their time, or memory, by ours: the median of the rounds, with the spread. */
  readonly ratio: string
  readonly required: string
  /** Undefined if the row is for information. */
  readonly isMet?: boolean | undefined
  readonly figures: string
  readonly cpu: string
  readonly peak: string
  /** Our own milliseconds for one unit. Undefined if the row was not measured. */
  readonly wallMs?: number
}

/** Without `theirs`, the row is about our own figures. */
export function rowOf(
  name: string,
  work: string,
  { each }: Measurement,
  { against, by = 'wall', atLeast, atMostMicroseconds }: Rival,
  ours: Samples,
  theirs: Samples | undefined,
): Row {
  const both = (figure: (samples: Samples) => string) =>
    [ours, ...(theirs === undefined ? [] : [theirs])].map(figure).join(', ')
  const show = by === 'growth' ? memorySize : duration
  const ratios = ratiosOf(ours, theirs, by)
  const cpuRatios = ratiosOf(ours, theirs, 'cpu')
  const wallMs = medianOf(ours, 'wall')
  const isFast = atMostMicroseconds === undefined || wallMs * 1_000 <= atMostMicroseconds
  const hasRatio = atLeast === undefined || (ratios.length > 0 && median(ratios) >= atLeast)
  const required = [
    ...(atLeast === undefined ? [] : [`≥ ${atLeast}`]),
    ...(atMostMicroseconds === undefined ? [] : [`≤ ${atMostMicroseconds} µs`]),
  ]
  // A side that consists of many processes does not know what they use.
  const isUsageKnown = !Number.isNaN(ours.peakBytes)
  const cpu = both((samples) => duration(medianOf(samples, 'cpu')))
  return {
    name,
    work,
    against,
    ratio:
      ratios.length === 0
        ? ''
        : `${round(median(ratios))} (${round(ratios[0]!)} to ${round(ratios.at(-1)!)})`,
    required: required.join(', '),
    isMet: required.length === 0 ? undefined : isFast && hasRatio,
    figures: `${both((samples) => show(medianOf(samples, by)))} ${each}`,
    cpu: isUsageKnown ? [...(cpuRatios.length > 0 ? [round(median(cpuRatios))] : []), cpu].join(': ') : '',
    peak: isUsageKnown ? both(({ peakBytes }) => memorySize(peakBytes)) : '',
    wallMs,
  }
}

/** A row of a rival that cannot be measured here. */
export function skippedRow(name: string, work: string, against: string, why: string): Row {
  return { name, work, against, ratio: `not measured: ${why}`, required: '', figures: '', cpu: '', peak: '' }
}

const HEADINGS = [
  'name',
  'work',
  'against',
  'ratio',
  'required',
  '',
  'ours, theirs',
  'CPU time',
  'peak memory',
]

export function markdownOf(rows: readonly Row[]): string {
  const lines = rows.map(({ name, work, against, ratio, required, isMet, figures, cpu, peak }) => {
    const verdict = isMet === undefined ? '' : isMet ? 'met' : '**missed**'
    return [`\`${name}\``, work, against, ratio, required, verdict, figures, cpu, peak]
  })
  const lineOf = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
  return [lineOf(HEADINGS), lineOf(HEADINGS.map(() => '---')), ...lines.map(lineOf)].join('\n')
}

function medianOf({ samples }: Samples, quantity: Quantity): number {
  return median(samples.map((sample) => sample[quantity]))
}

/** Ascending; none without a rival. */
function ratiosOf(ours: Samples, theirs: Samples | undefined, quantity: Quantity): number[] {
  return (theirs?.samples ?? [])
    .map((sample, round) => sample[quantity] / ours.samples[round]![quantity])
    .sort((a, b) => a - b)
}
