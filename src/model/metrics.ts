/** Usage metrics (service-interface.md "Metrics response", wire-behaviour.md 11). */
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
export type MetricInterval = (typeof METRIC_INTERVALS)[number]

export interface MetricsQuery<Set extends MetricSet = MetricSet> {
  readonly set: Set
  /** Seconds since the Unix epoch, inclusive; the interval that it lies in is included whole. */
  readonly start?: number | undefined
  /** Seconds since the Unix epoch, exclusive; at most 30 days after `start`. */
  readonly end?: number | undefined
  readonly interval?: MetricInterval | undefined
}

export type MetricUnit = 'bytes' | 'operations'

/** Seconds since the Unix epoch, and the value. */
export type MetricPoint = readonly [time: number, value: number]

export type Metric =
  | { readonly kind: 'scalar'; readonly name: string; readonly unit: MetricUnit; readonly value: number }
  /** Each value is the total of the interval that begins at its time; intervals without anything are left out. */
  | {
      readonly kind: 'accumulation'
      readonly name: string
      readonly unit: MetricUnit
      readonly interval: MetricInterval
      readonly values: readonly MetricPoint[]
    }
  /** Each value is what was there in the interval that begins at its time, at its end or, while it lasts, now. */
  | {
      readonly kind: 'gauge'
      readonly name: string
      readonly unit: MetricUnit
      readonly values: readonly MetricPoint[]
    }
  | { readonly kind: 'label'; readonly name: string; readonly values: readonly string[] }
