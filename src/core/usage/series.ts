import type { Tier, TierChunk, UsagePoint } from './tiers.ts'

/**
 * The usage of one scope (the account, a basin or a log) in one chunk of time: the value of each series by
 * bucket, counted from the start of the chunk. Persisted.
 */
export type SeriesOfChunk = Readonly<Record<string, Buckets>>
type Buckets = Readonly<Record<string, number>>

/** The name of a series: the metric set and the metric that report it. Persisted. */
export function seriesName(set: string, metric: string): string {
  return `${set}:${metric}`
}

/** The metric of stored bytes. */
export const METERED_SIZE = 'metered_size'
/** The only series of measurements, of which the last counts. The values of all others add up. */
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

/** Converts usage to the buckets of a coarser tier. It must fit into one chunk there. */
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

/** The values of a series with the start times of their buckets, ascending. */
export function pointsOf(
  series: SeriesOfChunk,
  name: string,
  { tier, chunk }: TierChunk,
): readonly UsagePoint[] {
  // Objects enumerate keys that are small integers in ascending order.
  return Object.entries(series[name] ?? {}).map(
    ([bucket, value]) => [chunk * tier.chunkSeconds + Number(bucket) * tier.bucketSeconds, value] as const,
  )
}

/** The chunk of a time in seconds. */
export function chunkAt(time: number, tier: Tier): TierChunk {
  return { tier, chunk: Math.floor(time / tier.chunkSeconds) }
}

/** The bucket of a time in seconds, counted from the start of its chunk. */
export function bucketOf(time: number, { tier, chunk }: TierChunk): number {
  return Math.floor((time - chunk * tier.chunkSeconds) / tier.bucketSeconds)
}
