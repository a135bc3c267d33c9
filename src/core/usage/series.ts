import type { MetricPoint } from '../../model/metrics.ts'
import type { Tier, TierChunk } from './tiers.ts'

/**
 * What is kept of one scope (the account, a basin, a log) in one chunk of time: for each series its value by bucket, counted from the chunk's
 * beginning. Persisted: keep stable.
 */
export type SeriesOfChunk = Readonly<Record<string, Buckets>>
type Buckets = Readonly<Record<string, number>>

/** A series is named by the metric set and the metric that it is told in. Persisted. */
export function seriesName(set: string, metric: string): string {
  return `${set}:${metric}`
}

export const METERED_SIZE = 'metered_size'
/** The one series whose values are measurements, of which the last counts. Those of all others add up. */
export const STORED_BYTES: string = seriesName('storage', METERED_SIZE)

/** Adds newer usage of the same chunk. */
export function mergeSeries(older: SeriesOfChunk, newer: SeriesOfChunk): SeriesOfChunk {
  const merged: Record<string, Buckets> = { ...older }
  for (const [series, buckets] of Object.entries(newer)) {
    const sums = series === STORED_BYTES ? undefined : merged[series]
    const changed: Record<string, number> = { ...merged[series] }
    for (const [bucket, value] of Object.entries(buckets)) changed[bucket] = (sums?.[bucket] ?? 0) + value
    merged[series] = changed
  }
  return merged
}

/** The same usage in the buckets of a coarser tier, all of it within one chunk there. */
export function rollUpSeries(series: SeriesOfChunk, from: TierChunk, to: TierChunk): SeriesOfChunk {
  const rolledUp: Record<string, Buckets> = {}
  for (const name of Object.keys(series)) {
    const buckets: Record<string, number> = {}
    for (const [time, value] of pointsOf(series, name, from)) {
      const bucket = bucketOf(time, to)
      buckets[bucket] = name === STORED_BYTES ? value : (buckets[bucket] ?? 0) + value
    }
    rolledUp[name] = buckets
  }
  return rolledUp
}

/** The values of a series with the times at which their buckets begin, ascending. */
export function pointsOf(
  series: SeriesOfChunk,
  name: string,
  { tier, chunk }: TierChunk,
): readonly MetricPoint[] {
  // Keys that are small integers come in their order.
  return Object.entries(series[name] ?? {}).map(
    ([bucket, value]) => [chunk * tier.chunkSeconds + Number(bucket) * tier.bucketSeconds, value] as const,
  )
}

export function chunkAt(time: number, tier: Tier): TierChunk {
  return { tier, chunk: Math.floor(time / tier.chunkSeconds) }
}

export function bucketOf(time: number, { tier, chunk }: TierChunk): number {
  return Math.floor((time - chunk * tier.chunkSeconds) / tier.bucketSeconds)
}
