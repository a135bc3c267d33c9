import type { MetricPoint } from '../../model/metrics.ts'
import { alignDown } from './tiers.ts'

/** The intervals of a query: from the beginning of the first to the end of the last, each of `seconds`. */
export interface Intervals {
  readonly from: number
  readonly to: number
  readonly seconds: number
}

/** The totals of the intervals, without those in which there was nothing. */
export function totals(points: Iterable<MetricPoint>, { from, to, seconds }: Intervals): MetricPoint[] {
  const byTime = new Map<number, number>()
  for (const [time, value] of points) {
    const start = alignDown(time, seconds)
    if (start >= from && start < to) byTime.set(start, (byTime.get(start) ?? 0) + value)
  }
  return [...byTime].filter(([, value]) => value !== 0).sort(([a], [b]) => a - b)
}

/**
 * The last measurement of each interval or, where there is none, of the latest before it: from the first interval with any, to that in which
 * `until` is.
 */
export function lastMeasurements(
  points: readonly MetricPoint[],
  { from, to, seconds }: Intervals,
  until: number,
): MetricPoint[] {
  const ascending = [...points].sort(([a], [b]) => a - b)
  const values: MetricPoint[] = []
  let last: number | undefined
  let next = 0
  for (let start = from; start < to && start <= until; start += seconds) {
    while (next < ascending.length && ascending[next]![0] < start + seconds) last = ascending[next++]![1]
    if (last !== undefined) values.push([start, last])
  }
  return values
}
