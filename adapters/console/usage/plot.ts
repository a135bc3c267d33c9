import type { MetricUnit } from '../../../src/model/metrics.ts'
import type { ChartData, TimeRange } from './metrics.ts'

/** The size of a plot in the units of its paths; the page stretches it. */
export const WIDTH = 1000
export const HEIGHT = 100

/** The scale of the values: the distance of its lines, and the value at the top. */
export interface Scale {
  readonly step: number
  readonly top: number
}

/** A scale with three lines or fewer above zero: powers of two for bytes, 1, 2 and 5 times powers of ten. */
export function scaleOf(max: number, unit: MetricUnit): Scale {
  const least = Math.max(1, max / 3)
  const power = 10 ** Math.floor(Math.log10(least))
  const step =
    unit === 'bytes'
      ? 2 ** Math.ceil(Math.log2(least))
      : [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= least)!
  return { step, top: Math.max(1, Math.ceil(max / step)) * step }
}

/** The largest value of a chart; of bars that stand on each other, their sum. */
export function maximumOf({ kind, series }: Pick<ChartData, 'kind' | 'series'>): number {
  const sums = new Map<number, number>()
  for (const { points } of series) {
    for (const [time, value] of points) {
      sums.set(time, kind === 'totals' ? (sums.get(time) ?? 0) + value : Math.max(sums.get(time) ?? 0, value))
    }
  }
  return [...sums.values()].reduce((most, value) => Math.max(most, value), 0)
}

/** The path of each series: bars that stand on those of the series before, or a line with steps. */
export function pathsOf(
  { kind, series }: Pick<ChartData, 'kind' | 'series'>,
  { start, end, step }: TimeRange,
  top: number,
): string[] {
  const x = (time: number) => rounded((time - start) / (end - start)) * WIDTH
  const y = (value: number) => HEIGHT - rounded(value / top) * HEIGHT
  const sums = new Map<number, number>()
  const bar = (time: number, value: number) => {
    const base = sums.get(time) ?? 0
    sums.set(time, base + value)
    return `M${x(time + step / 10)} ${y(base)}V${y(base + value)}H${x(time + (step * 9) / 10)}V${y(base)}z`
  }
  return series.map(({ points }) => {
    if (kind === 'totals') return points.map(([time, value]) => bar(time, value)).join('')
    const changes = points.filter(([, value], index) => value !== points[index - 1]?.[1])
    const lines = changes.map(
      ([time, value], index) => `${index === 0 ? 'M' : 'H'}${x(time)}${index === 0 ? ' ' : 'V'}${y(value)}`,
    )
    const last = points.at(-1)
    return last === undefined ? '' : `${lines.join('')}H${x(Math.min(last[0] + step, end))}`
  })
}

function rounded(part: number): number {
  return Math.round(part * 1e5) / 1e5
}

const MINUTE = 60_000
/** The distances of times on the axis, in minutes. */
const DISTANCES = [1, 5, 10, 15, 30, 60, 120, 240, 480, 1440, 2880, 7200]

/** Returns up to seven round times of the local time zone. */
export function timesOf({ start, end }: TimeRange): number[] {
  const distance = MINUTE * (DISTANCES.find((minutes) => minutes * MINUTE * 6.5 >= end - start) ?? 14_400)
  const offset = new Date(start).getTimezoneOffset() * MINUTE
  const times: number[] = []
  let time = Math.ceil((start - offset) / distance) * distance + offset
  for (; time < end; time += distance) times.push(time)
  return times
}
