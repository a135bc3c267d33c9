import type { Call } from '../api/request.ts'
import type { Metric, MetricPoint } from '../api/types.ts'

/** The account, a basin, or a stream. */
export interface UsageOf {
  readonly basin?: string
  readonly stream?: string
}

/** Shorter names are invalid in the paths of metrics (docs/protocol.md "Names"). */
const BASIN_NAME_MIN = 8

/** Whether the protocol has metrics of it. */
export function hasMetrics({ basin }: UsageOf): boolean {
  return basin === undefined || basin.length >= BASIN_NAME_MIN
}

/** A metric set: its title, and whether it takes an interval. */
export interface MetricSet {
  readonly set: string
  readonly title: string
  readonly takesInterval: boolean
}

const ACCOUNT: readonly MetricSet[] = [
  { set: 'account-ops', title: 'Operations on the account', takesInterval: true },
  { set: 'active-basins', title: 'Active basins', takesInterval: false },
]
const BASIN: readonly MetricSet[] = [
  { set: 'storage', title: 'Stored', takesInterval: false },
  { set: 'append-throughput', title: 'Appended', takesInterval: true },
  { set: 'append-ops', title: 'Append operations', takesInterval: true },
  { set: 'read-throughput', title: 'Read', takesInterval: true },
  { set: 'read-ops', title: 'Read operations', takesInterval: true },
  { set: 'basin-ops', title: 'Operations on the basin', takesInterval: true },
]
const STREAM: readonly MetricSet[] = [{ set: 'storage', title: 'Stored', takesInterval: false }]

/** The metric sets of a level (docs/protocol.md "Metric sets"). */
export function metricSetsOf({ basin, stream }: UsageOf): readonly MetricSet[] {
  if (stream !== undefined) return STREAM
  return basin === undefined ? ACCOUNT : BASIN
}

/** Ranges of time: their length in seconds, and the interval of their values. */
export const RANGES = [
  { title: 'Last hour', seconds: 3600, interval: 'minute' },
  { title: 'Last 24 hours', seconds: 86_400, interval: 'hour' },
  { title: 'Last 7 days', seconds: 604_800, interval: 'hour' },
  { title: 'Last 30 days', seconds: 2_592_000, interval: 'day' },
] as const
export type Range = (typeof RANGES)[number]

/** The call that queries a metric set. `end` is in seconds since the Unix epoch. */
export function metricsCall(of: UsageOf, set: MetricSet, range: Range, end: number): Call {
  const names = [of.basin, of.stream].filter((name) => name !== undefined)
  const interval = set.takesInterval ? range.interval : undefined
  return {
    method: 'GET',
    path: ['metrics', ...names],
    query: { set: set.set, start: end - range.seconds, end, interval },
  }
}

/** A line of a chart. */
interface ChartSeries {
  readonly name: string
  readonly points: readonly MetricPoint[]
  /** The sum of totals, or the last of measurements. */
  readonly summary: number
}

/** What a metric set returned, as one chart. */
export interface ChartData {
  readonly unit: string
  /** Totals are drawn as bars, measurements as a line. */
  readonly kind: 'totals' | 'measurements'
  readonly series: readonly ChartSeries[]
  /** Names, as those of the active basins. */
  readonly labels: readonly string[]
}

/** Combines the metrics of a set. Series without any value are left out. */
export function chartOf(metrics: readonly Metric[]): ChartData {
  const all = metrics.flatMap(({ accumulation, gauge }) => accumulation ?? gauge ?? [])
  const kind = metrics.some(({ gauge }) => gauge !== undefined) ? 'measurements' : 'totals'
  const series = all
    .filter(({ values }) => values.length > 0)
    .map(({ name, values }) => {
      const summary =
        kind === 'totals' ? values.reduce((sum, [, value]) => sum + value, 0) : values.at(-1)![1]
      return { name, points: values, summary }
    })
    .sort((a, b) => b.summary - a.summary)
  const labels = metrics.flatMap(({ label }) => label?.values ?? [])
  return { unit: all[0]?.unit ?? '', kind, series, labels }
}

/** A range of time in seconds since the Unix epoch, and the interval of its values. */
export interface TimeRange {
  readonly start: number
  readonly end: number
  readonly interval: string
}

/** The times, and the values of each series at them: null where there is none. */
export type AlignedData = [times: number[], ...values: (number | null)[][]]

const INTERVAL_SECONDS: Readonly<Record<string, number>> = { minute: 60, hour: 3600, day: 86_400 }

/** The whole intervals that a range touches. */
export function wholeIntervals({ start, end, interval }: TimeRange): TimeRange {
  const step = INTERVAL_SECONDS[interval] ?? 3600
  return { start: Math.floor(start / step) * step, end: Math.ceil(end / step) * step, interval }
}

/**
 * The points of all series on one axis, as uPlot takes them. Totals are zero in intervals without usage;
 * measurements have no value there.
 */
export function alignedData(
  { series, kind }: Pick<ChartData, 'series' | 'kind'>,
  range: TimeRange,
): AlignedData {
  const times = new Set(series.flatMap(({ points }) => points.map(([time]) => time)))
  if (kind === 'totals') {
    const step = INTERVAL_SECONDS[range.interval] ?? 3600
    const { start, end } = wholeIntervals(range)
    for (let time = start; time < end; time += step) times.add(time)
  }
  const axis = [...times].sort((a, b) => a - b)
  const values = series.map(({ points }) => {
    const byTime = new Map(points)
    return axis.map((time) => byTime.get(time) ?? (kind === 'totals' ? 0 : null))
  })
  return [axis, ...values]
}

/** Adds to each series those after it, which are drawn over it: bars then stand on each other. */
export function stacked([times, ...values]: AlignedData): AlignedData {
  const sums = times.map(() => 0)
  const stack = values.toReversed().map((series) =>
    series.map((value, index) => {
      sums[index]! += value ?? 0
      return sums[index]!
    }),
  )
  return [times, ...stack.reverse()]
}
