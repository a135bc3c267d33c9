import { hourOf } from './activity.ts'
import { MINUTE_SECONDS } from './tiers.ts'

/** What is known of the hourly look at all basins. Hours since the Unix epoch. Persisted: keep stable. */
export interface Sampled {
  /** The latest hour in which all basins were looked at. */
  readonly hour: number
  /** Who is at it. Absent once it is done. */
  readonly claim?: SamplingClaim
}

interface SamplingClaim {
  readonly hour: number
  readonly by: string
  /** When it was last said, in seconds. */
  readonly at: number
}

/** A claim that was not said again for so long is that of an engine that was closed or crashed. */
const CLAIM_SECONDS = 2 * MINUTE_SECONDS
/** What is measured up to so long after an hour's end is taken for what was there when it ended. */
const PUNCTUAL_SECONDS = 5 * MINUTE_SECONDS

/** What an engine has to do about the hour of `now` (seconds): look at the basins (`due`), or nothing, for another is at it or it is done. */
export function samplingState(sampled: Sampled, by: string, now: number): 'due' | 'claimed' | 'done' {
  if (isSampled(sampled.hour, hourOf(now))) return 'done'
  const { claim } = sampled
  const isHeld = claim?.hour === hourOf(now) && Math.abs(now - claim.at) < CLAIM_SECONDS
  return isHeld && claim.by !== by ? 'claimed' : 'due'
}

/** Whether an hour is seen to. Clocks differ a little; an hour far ahead was a wrong clock's, and would stop everything until it comes. */
export function isSampled(last: number, hour: number): boolean {
  return last >= hour && last <= hour + 1
}

/** Whether a claim is to be said again. */
export function isClaimOld(at: number, now: number): boolean {
  return Math.abs(now - at) >= CLAIM_SECONDS / 2
}

/** The hour that a measurement of `now` (seconds) is the last of: the one before when it has only just ended. */
export function sampledHour(now: number): number {
  return hourOf(now - PUNCTUAL_SECONDS)
}
