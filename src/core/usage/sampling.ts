import { DAY_SECONDS, DAYS, HOUR_SECONDS, HOURS, keptFrom, MINUTE_SECONDS } from './tiers.ts'

/** A range of hours, both ends included, in which a basin had a stream. Hours since the Unix epoch. */
export type HourRange = readonly [first: number, last: number]

/** The hours in which a basin had a stream: ascending ranges with gaps between them. Persisted. */
export type Activity = readonly HourRange[]

const HOURS_PER_DAY = DAY_SECONDS / HOUR_SECONDS

/** The hour of a time in seconds, since the Unix epoch. */
export function hourOf(time: number): number {
  return Math.floor(time / HOUR_SECONDS)
}

/** Adds a range, merging those that overlap or touch. */
export function addActivity(activity: Activity, run: HourRange): Activity {
  const merged: HourRange[] = []
  for (const [first, last] of [...activity, run].sort(([a], [b]) => a - b)) {
    const previous = merged.at(-1)
    if (previous === undefined || first > previous[1] + 1) merged.push([first, last])
    else merged[merged.length - 1] = [previous[0], Math.max(previous[1], last)]
  }
  return merged
}

/** Reduces the resolution to days before the hours tier, and removes usage older than the days tier. */
export function coarsenActivity(activity: Activity, now: number): Activity {
  const hoursFrom = keptFrom(HOURS, now) / HOUR_SECONDS
  const daysFrom = keptFrom(DAYS, now) / HOUR_SECONDS
  let coarsened: Activity = []
  for (const [first, last] of activity) {
    if (last < daysFrom) continue
    const from = Math.max(daysFrom, first < hoursFrom ? first - (first % HOURS_PER_DAY) : first)
    const to = last < hoursFrom ? last - (last % HOURS_PER_DAY) + HOURS_PER_DAY - 1 : last
    coarsened = addActivity(coarsened, [from, to])
  }
  return coarsened
}

/**
 * Whether there was a stream in an hour that begins in `[from, to)`. Seconds; `from` is the start of an hour.
 */
export function wasActive(activity: Activity, from: number, to: number): boolean {
  return activity.some(([first, last]) => first * HOUR_SECONDS < to && last * HOUR_SECONDS >= from)
}

/** The state of the hourly sampling of all basins. Hours since the Unix epoch. Persisted. */
export interface Sampled {
  /** The last hour in which all basins were sampled. */
  readonly hour: number
  /** The engine that samples them. Absent when it is done. */
  readonly claim?: SamplingClaim | undefined
}

interface SamplingClaim {
  readonly hour: number
  readonly by: string
  /** The time of its last renewal, in seconds. */
  readonly at: number
}

/** A claim that was not renewed for so long belongs to an engine that was closed or crashed. */
const CLAIM_SECONDS = 2 * MINUTE_SECONDS
/** A measurement up to this long after an hour's end counts for that hour. */
const PUNCTUAL_SECONDS = 5 * MINUTE_SECONDS

/**
 * Whether an engine has to sample the basins in the hour of `now`, in seconds: they are `due`, `claimed` by
 * another engine, or `done`.
 */
export function samplingState(sampled: Sampled, by: string, now: number): 'due' | 'claimed' | 'done' {
  if (isSampled(sampled.hour, hourOf(now))) return 'done'
  const { claim } = sampled
  const isHeld = claim?.hour === hourOf(now) && Math.abs(now - claim.at) < CLAIM_SECONDS
  return isHeld && claim.by !== by ? 'claimed' : 'due'
}

/**
 * Whether an hour is sampled. Tolerates small clock differences, but not an hour far ahead: that came from a
 * wrong clock and would prevent sampling until then.
 */
export function isSampled(last: number, hour: number): boolean {
  return last >= hour && last <= hour + 1
}

/** Whether a claim must be renewed. */
export function mustRenewClaim(at: number, now: number): boolean {
  return Math.abs(now - at) >= CLAIM_SECONDS / 2
}

/**
 * The hour that a measurement at `now`, in seconds, counts for: the previous one if it has only just ended.
 */
export function sampledHour(now: number): number {
  return hourOf(now - PUNCTUAL_SECONDS)
}
