import type { MetricInterval } from '../../model/metrics.ts'

/** Seconds per minute. */
export const MINUTE_SECONDS = 60
/** Seconds per hour. */
export const HOUR_SECONDS = 3_600
/** Seconds per day. */
export const DAY_SECONDS = 86_400

/**
 * A resolution at which usage is kept. A chunk of usage is in one tier at a time: when it is too old for its
 * tier, it is rolled up into the next one or, after the last, deleted. Times are in seconds since the Unix
 * epoch.
 */
export interface Tier {
  /** Persisted in keys, as `chunkSeconds` and `interval` are. */
  readonly name: 'minutes' | 'hours' | 'days'
  readonly interval: MetricInterval
  /** The length of the interval. */
  readonly bucketSeconds: number
  /** The range of time in one document. */
  readonly chunkSeconds: number
  /** How long a chunk is kept after its end. */
  readonly keptSeconds: number
}

/** Usage by minute, kept for 3 days. */
export const MINUTES: Tier = {
  name: 'minutes',
  interval: 'minute',
  bucketSeconds: MINUTE_SECONDS,
  chunkSeconds: HOUR_SECONDS,
  keptSeconds: 3 * DAY_SECONDS,
}
/** Usage by hour, kept for 40 days. */
export const HOURS: Tier = {
  name: 'hours',
  interval: 'hour',
  bucketSeconds: HOUR_SECONDS,
  chunkSeconds: DAY_SECONDS,
  keptSeconds: 40 * DAY_SECONDS,
}
/** Usage by day, kept for 400 days. */
export const DAYS: Tier = {
  name: 'days',
  interval: 'day',
  bucketSeconds: DAY_SECONDS,
  chunkSeconds: 100 * DAY_SECONDS,
  keptSeconds: 400 * DAY_SECONDS,
}
/** All tiers, from the finest to the coarsest. */
export const TIERS: readonly Tier[] = [MINUTES, HOURS, DAYS]

/** A recorded value: the start of its bucket in seconds since the Unix epoch, and the value. */
export type UsagePoint = readonly [seconds: number, value: number]

/** A range of time in a tier, which begins at `chunk * tier.chunkSeconds`. */
export interface TierChunk {
  readonly tier: Tier
  readonly chunk: number
}

/** Returns the largest multiple of `size` that does not exceed `time`. */
export function alignDown(time: number, size: number): number {
  return Math.floor(time / size) * size
}

/** The chunk of a time in seconds. */
export function chunkAt(time: number, tier: Tier): TierChunk {
  return { tier, chunk: Math.floor(time / tier.chunkSeconds) }
}

/** The bucket of a time in seconds, counted from the start of its chunk. */
export function bucketOf(time: number, { tier, chunk }: TierChunk): number {
  return Math.floor((time - chunk * tier.chunkSeconds) / tier.bucketSeconds)
}

/** The start of the oldest chunk that stays in the tier. */
export function keptFrom(tier: Tier, now: number): number {
  return Math.max(0, alignDown(now - tier.keptSeconds, tier.chunkSeconds))
}

/** Whether a chunk is too old for its tier. */
export function isDue({ tier, chunk }: TierChunk, now: number): boolean {
  return chunk * tier.chunkSeconds < keptFrom(tier, now)
}

/** The tier that follows, or undefined. */
function nextTier(tier: Tier): Tier | undefined {
  return TIERS[TIERS.indexOf(tier) + 1]
}

/** The chunk that a chunk is rolled up into, or undefined. */
export function rolledUpInto({ tier, chunk }: TierChunk): TierChunk | undefined {
  const next = nextTier(tier)
  return next && { tier: next, chunk: Math.floor((chunk * tier.chunkSeconds) / next.chunkSeconds) }
}

/** The tier of usage at this time. */
export function tierAt(time: number, now: number): Tier {
  return TIERS.find((tier) => time >= keptFrom(tier, now)) ?? DAYS
}

/**
 * The finest tier, at least as coarse as the interval, that holds everything from `start`; the coarsest if
 * none does.
 */
export function coveringTier(interval: MetricInterval, start: number, now: number): Tier {
  const requested = TIERS.findIndex((tier) => tier.interval === interval)
  return TIERS.slice(requested).find((tier) => start >= keptFrom(tier, now)) ?? DAYS
}

/**
 * All chunks that may hold usage of `[from, to)` at least as fine as `coarsest`: at most 73, 41 and 5 of the
 * tiers.
 */
export function chunksBetween(from: number, to: number, coarsest: Tier, now: number): TierChunk[] {
  return TIERS.slice(0, TIERS.indexOf(coarsest) + 1).flatMap((tier) =>
    chunksOf(tier, Math.max(from, keptFrom(tier, now)), Math.min(to, now + 1)),
  )
}

/**
 * All chunks that may hold a measurement before `to`, the latest first, in tiers at least as coarse as
 * `finest`.
 */
export function chunksBefore(to: number, finest: Tier, now: number): TierChunk[] {
  let before = Math.min(to, now + 1)
  return TIERS.slice(TIERS.indexOf(finest)).flatMap((tier) => {
    const from = keptFrom(tier, now)
    const chunks = chunksOf(tier, from, before).reverse()
    before = Math.min(before, from)
    return chunks
  })
}

function chunksOf(tier: Tier, from: number, to: number): TierChunk[] {
  const first = Math.floor(from / tier.chunkSeconds)
  const count = Math.ceil(to / tier.chunkSeconds) - first
  return Array.from({ length: Math.max(0, count) }, (_, index) => ({ tier, chunk: first + index }))
}

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
