import type { MetricInterval } from '../../model/metrics.ts'

export const MINUTE_SECONDS = 60
export const HOUR_SECONDS = 3_600
export const DAY_SECONDS = 86_400

/**
 * How finely usage of some age is kept. A datum is in one tier: when its chunk has been kept for long enough it is rolled up into the next
 * one, from the last it is dropped. All times are seconds since the Unix epoch.
 */
export interface Tier {
  /** Persisted in keys: keep stable, as `chunkSeconds` and `interval`. */
  readonly name: 'minutes' | 'hours' | 'days'
  readonly interval: MetricInterval
  /** What the interval takes. */
  readonly bucketSeconds: number
  /** The time that is kept in one document. */
  readonly chunkSeconds: number
  /** How long a whole chunk is kept after its end. */
  readonly keptSeconds: number
}

export const MINUTES: Tier = {
  name: 'minutes',
  interval: 'minute',
  bucketSeconds: MINUTE_SECONDS,
  chunkSeconds: HOUR_SECONDS,
  keptSeconds: 3 * DAY_SECONDS,
}
export const HOURS: Tier = {
  name: 'hours',
  interval: 'hour',
  bucketSeconds: HOUR_SECONDS,
  chunkSeconds: DAY_SECONDS,
  keptSeconds: 40 * DAY_SECONDS,
}
export const DAYS: Tier = {
  name: 'days',
  interval: 'day',
  bucketSeconds: DAY_SECONDS,
  chunkSeconds: 100 * DAY_SECONDS,
  keptSeconds: 400 * DAY_SECONDS,
}
/** From the finest to the coarsest. */
export const TIERS: readonly Tier[] = [MINUTES, HOURS, DAYS]

/** A stretch of time within a tier: from `chunk * tier.chunkSeconds` on. */
export interface TierChunk {
  readonly tier: Tier
  readonly chunk: number
}

export function alignDown(time: number, size: number): number {
  return Math.floor(time / size) * size
}

/** Where the chunks begin that are not due to leave the tier. */
export function keptFrom(tier: Tier, now: number): number {
  return Math.max(0, alignDown(now - tier.keptSeconds, tier.chunkSeconds))
}

export function isDue({ tier, chunk }: TierChunk, now: number): boolean {
  return chunk * tier.chunkSeconds < keptFrom(tier, now)
}

/** Where the tier's data go when they are due; undefined: nowhere. */
export function nextTier(tier: Tier): Tier | undefined {
  return TIERS[TIERS.indexOf(tier) + 1]
}

/** Where the data of a chunk go when they are due; undefined: nowhere. */
export function rolledUpInto({ tier, chunk }: TierChunk): TierChunk | undefined {
  const next = nextTier(tier)
  return next && { tier: next, chunk: Math.floor((chunk * tier.chunkSeconds) / next.chunkSeconds) }
}

/** The tier that a datum of this time belongs to. */
export function tierAt(time: number, now: number): Tier {
  return TIERS.find((tier) => time >= keptFrom(tier, now)) ?? DAYS
}

/** The finest tier, no finer than asked for, that still has everything from `start` on; the coarsest when none has. */
export function coveringTier(interval: MetricInterval, start: number, now: number): Tier {
  const asked = TIERS.findIndex((tier) => tier.interval === interval)
  return TIERS.slice(asked).find((tier) => start >= keptFrom(tier, now)) ?? DAYS
}

/** Every chunk in which there may be data of `[from, to)` that are to be told by intervals of `coarsest`: at most 73, 41 and 5 of the tiers. */
export function chunksBetween(from: number, to: number, coarsest: Tier, now: number): TierChunk[] {
  return TIERS.slice(0, TIERS.indexOf(coarsest) + 1).flatMap((tier) =>
    chunksOf(tier, Math.max(from, keptFrom(tier, now)), Math.min(to, now + 1)),
  )
}

/** Every chunk in which there may be a measurement of before `to`, the latest first; none in tiers finer than `finest`. */
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
