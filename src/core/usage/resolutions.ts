import type { MetricInterval } from '../../model/metrics.ts'

export const MINUTE_SECONDS = 60
export const HOUR_SECONDS = 3_600
const DAY_SECONDS = 86_400

/**
 * An interval by which usage is kept. Usage is stored by all of them at once, in chunks: all usage of a scope
 * in a range of time. Times are in seconds since the Unix epoch. Persisted, except for how long it is kept.
 */
export interface Resolution {
  readonly interval: MetricInterval
  readonly bucketSeconds: number
  readonly chunkSeconds: number
  /** How long a chunk is kept after its end. */
  readonly keptSeconds: number
}

export const BY_MINUTE: Resolution = {
  interval: 'minute',
  bucketSeconds: MINUTE_SECONDS,
  chunkSeconds: HOUR_SECONDS,
  keptSeconds: 3 * DAY_SECONDS,
}
export const BY_HOUR: Resolution = {
  interval: 'hour',
  bucketSeconds: HOUR_SECONDS,
  chunkSeconds: DAY_SECONDS,
  keptSeconds: 40 * DAY_SECONDS,
}
export const BY_DAY: Resolution = {
  interval: 'day',
  bucketSeconds: DAY_SECONDS,
  chunkSeconds: 10 * DAY_SECONDS,
  keptSeconds: 400 * DAY_SECONDS,
}
/** From the finest to the coarsest. */
export const RESOLUTIONS: readonly Resolution[] = [BY_MINUTE, BY_HOUR, BY_DAY]

/** A recorded value: the start of its bucket in seconds since the Unix epoch, and the value. */
export type UsagePoint = readonly [seconds: number, value: number]

/** Returns the largest multiple of `size` that does not exceed `time`. */
export function alignDown(time: number, size: number): number {
  return Math.floor(time / size) * size
}

/** The chunk of a time: the chunks of a resolution are numbered from the Unix epoch. */
export function chunkOf(time: number, { chunkSeconds }: Resolution): number {
  return Math.floor(time / chunkSeconds)
}

/** The start of the oldest chunk that is kept. */
export function keptFrom({ keptSeconds, chunkSeconds }: Resolution, now: number): number {
  return Math.max(0, alignDown(now - keptSeconds, chunkSeconds))
}

/** The chunks of `[from, to)`, ascending. */
export function chunksBetween({ chunkSeconds }: Resolution, from: number, to: number): number[] {
  const first = Math.floor(from / chunkSeconds)
  const count = Math.ceil(to / chunkSeconds) - first
  return Array.from({ length: Math.max(0, count) }, (_, index) => first + index)
}

/** The name of a series: the metric set and the metric that report it. Persisted. */
export function seriesName(set: string, metric: string): string {
  return `${set}:${metric}`
}

export const METERED_SIZE = 'metered_size'
export const STORED_BYTES: string = seriesName('storage', METERED_SIZE)
/** 1 while a basin has a stream. */
export const ACTIVE: string = seriesName('active-basins', 'active_basins')

/** The values of each series by bucket, counted from the start of the chunk. Persisted. */
export type Series = Readonly<Record<string, Buckets>>
type Buckets = Readonly<Record<string, number>>

/** The values of measurements replace each other, those of all other series add up. */
export function addedValue(series: string, before: number | undefined, value: number): number {
  return series === STORED_BYTES || series === ACTIVE ? value : (before ?? 0) + value
}

/** Adds newer usage of the same chunk. */
export function addSeries(older: Series, newer: Series): Series {
  const sum: Record<string, Buckets> = { ...older }
  for (const [series, buckets] of Object.entries(newer)) {
    const changed: Record<string, number> = { ...sum[series] }
    for (const [bucket, value] of Object.entries(buckets)) {
      changed[bucket] = addedValue(series, changed[bucket], value)
    }
    sum[series] = changed
  }
  return sum
}

/** The values of a series with the start times of their buckets, ascending. */
export function pointsOf(
  series: Series,
  name: string,
  { bucketSeconds, chunkSeconds }: Resolution,
  chunk: number,
): readonly UsagePoint[] {
  // Objects enumerate keys that are small integers in ascending order.
  return Object.entries(series[name] ?? {}).map(
    ([bucket, value]) => [chunk * chunkSeconds + Number(bucket) * bucketSeconds, value] as const,
  )
}
