import type { Time } from './validation.ts'

/** The metric sets of the account (docs/protocol.md "Metric sets"). */
export const ACCOUNT_METRIC_SETS = ['active-basins', 'account-ops'] as const
export const BASIN_METRIC_SETS = [
  'storage',
  'append-ops',
  'read-ops',
  'read-throughput',
  'append-throughput',
  'basin-ops',
] as const
export const STREAM_METRIC_SETS = ['storage'] as const

export type AccountMetricSet = (typeof ACCOUNT_METRIC_SETS)[number]
export type BasinMetricSet = (typeof BASIN_METRIC_SETS)[number]
export type StreamMetricSet = (typeof STREAM_METRIC_SETS)[number]
export type MetricSet = AccountMetricSet | BasinMetricSet | StreamMetricSet

export const METRIC_INTERVALS = ['minute', 'hour', 'day'] as const
/** The interval of one value. */
export type MetricInterval = (typeof METRIC_INTERVALS)[number]

/** Selects usage metrics of a range of time. */
export interface MetricsQuery<Set extends MetricSet = MetricSet> {
  readonly set: Set
  /** Start of the range, required. The interval that contains it is included as a whole. */
  readonly start?: Time | undefined
  /** End of the range, exclusive and required: at most 30 days after `start` and 5 minutes in the future. */
  readonly end?: Time | undefined
  /** The interval of each value. The default depends on the set; old usage is kept in longer intervals. */
  readonly interval?: MetricInterval | undefined
}

export type MetricUnit = 'bytes' | 'operations'

/** The start of an interval in milliseconds since the Unix epoch, and its value. */
export type MetricPoint = readonly [time: number, value: number]

/** One metric of a set, with its name (docs/protocol.md "Metrics responses"). */
export type Metric = { readonly name: string } & (
  | {
      /** Totals of intervals, by time. Intervals without usage are absent. */
      readonly kind: 'accumulation'
      readonly unit: MetricUnit
      readonly interval: MetricInterval
      readonly values: readonly MetricPoint[]
    }
  | {
      /** Measurements, by time: the last one of each interval, or now for the current interval. */
      readonly kind: 'gauge'
      readonly unit: MetricUnit
      readonly values: readonly MetricPoint[]
    }
  | {
      /** Names, as those of the active basins. */
      readonly kind: 'label'
      readonly values: readonly string[]
    }
)

/** The end of a range that includes usage up to now, in seconds since the Unix epoch: ends are exclusive. */
export function endOfUsage(nowMs: number): number {
  return Math.floor(nowMs / 1000) + 1
}
