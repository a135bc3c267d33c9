import type {
  Metric,
  MetricInterval,
  MetricPoint,
  MetricSet,
  MetricUnit,
} from '../../../src/model/metrics.ts'
import type { Connection } from '../connection.ts'

/** A basin, or a stream of it. */
export interface ResourceName {
  readonly basin: string
  readonly stream?: string | undefined
}

/** The account, a basin, or a stream. */
export type UsageOf = Partial<ResourceName>

/** A metric set as a chart: its title, and whether it takes an interval. */
export interface ChartedSet {
  readonly set: MetricSet
  readonly title: string
  readonly takesInterval: boolean
}

const ACCOUNT: readonly ChartedSet[] = [
  { set: 'account-ops', title: 'Operations on the account', takesInterval: true },
  { set: 'active-basins', title: 'Active basins', takesInterval: false },
]
const BASIN: readonly ChartedSet[] = [
  { set: 'storage', title: 'Stored', takesInterval: false },
  { set: 'append-throughput', title: 'Appended', takesInterval: true },
  { set: 'append-ops', title: 'Append operations', takesInterval: true },
  { set: 'read-throughput', title: 'Read', takesInterval: true },
  { set: 'read-ops', title: 'Read operations', takesInterval: true },
  { set: 'basin-ops', title: 'Operations on the basin', takesInterval: true },
]
const STREAM: readonly ChartedSet[] = [{ set: 'storage', title: 'Stored', takesInterval: false }]

/** The metric sets of a level (docs/protocol.md "Metric sets"). */
export function metricSetsOf({ basin, stream }: UsageOf): readonly ChartedSet[] {
  if (stream !== undefined) return STREAM
  return basin === undefined ? ACCOUNT : BASIN
}

const HOUR = 3_600_000

/** Ranges of time: their length in milliseconds, and the interval of their values. */
export const RANGES = [
  { title: 'Last hour', ms: HOUR, interval: 'minute' },
  { title: 'Last 24 hours', ms: 24 * HOUR, interval: 'hour' },
  { title: 'Last 7 days', ms: 168 * HOUR, interval: 'hour' },
  { title: 'Last 30 days', ms: 720 * HOUR, interval: 'day' },
] as const
export type Range = (typeof RANGES)[number]

/** Queries a metric set. `end` is in milliseconds since the Unix epoch. */
export function queryMetrics(
  connection: Connection,
  { basin, stream }: UsageOf,
  { set, takesInterval }: ChartedSet,
  range: Range,
  end: number,
  signal?: AbortSignal,
): Promise<readonly Metric[]> {
  const { hw } = connection
  const interval = takesInterval ? range.interval : undefined
  const account = hw as { metrics(query: object, options: object): Promise<readonly Metric[]> }
  const level =
    basin === undefined ? account : stream === undefined ? hw.basin(basin) : hw.basin(basin).stream(stream)
  return (level as typeof account).metrics({ set, start: end - range.ms, end, interval }, { signal })
}

/** A line of a chart, or a colour of its bars. */
interface ChartSeries {
  readonly name: string
  readonly points: readonly MetricPoint[]
  /** The sum of totals, or the last of measurements. */
  readonly summary: number
}

/** The result of a metric set, as one chart. */
export interface ChartData {
  readonly unit: MetricUnit
  /** Totals are drawn as bars, measurements as a line. */
  readonly kind: 'totals' | 'measurements'
  readonly series: readonly ChartSeries[]
  /** Names, as those of the active basins. */
  readonly labels: readonly string[]
}

/** Combines the metrics of a set. Series without any value are left out. */
export function chartOf(metrics: readonly Metric[]): ChartData {
  const all = metrics.filter((metric) => metric.kind !== 'label')
  const kind = all.some((metric) => metric.kind === 'gauge') ? 'measurements' : 'totals'
  const series = all
    .filter(({ values }) => values.length > 0)
    .map(({ name, values }) => {
      const summary =
        kind === 'totals' ? values.reduce((sum, [, value]) => sum + value, 0) : values.at(-1)![1]
      return { name, points: values, summary }
    })
    .sort((a, b) => b.summary - a.summary)
  const labels = metrics.flatMap((metric) => (metric.kind === 'label' ? metric.values : []))
  return { unit: all[0]?.unit ?? 'operations', kind, series, labels }
}

/** A range of time in milliseconds since the Unix epoch, of whole intervals. */
export interface TimeRange {
  readonly start: number
  readonly end: number
  /** The length of an interval. */
  readonly step: number
}

const INTERVAL_MS: Readonly<Record<MetricInterval, number>> = { minute: 60_000, hour: HOUR, day: 24 * HOUR }

/** The whole intervals that a range touches. */
export function wholeIntervals(start: number, end: number, interval: MetricInterval): TimeRange {
  const step = INTERVAL_MS[interval]
  return { start: Math.floor(start / step) * step, end: Math.ceil(end / step) * step, step }
}

/**
 * The beginnings of the intervals of a range, and the values of each series in them: zero in intervals
 * without a total, and the last measurement until the next one.
 */
export function tableOf(
  { kind, series }: Pick<ChartData, 'kind' | 'series'>,
  { start, end, step }: TimeRange,
): [times: number[], ...values: number[][]] {
  const times = Array.from({ length: (end - start) / step }, (_, index) => start + index * step)
  const valuesOf = ({ points }: ChartSeries) =>
    times.map((time) => {
      const point = points.findLast(([at]) => at < time + step)
      return point !== undefined && (kind === 'measurements' || point[0] >= time) ? point[1] : 0
    })
  return [times, ...series.map(valuesOf)]
}
