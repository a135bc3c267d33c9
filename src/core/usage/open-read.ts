import { alignDown, MINUTE_SECONDS } from './tiers.ts'

const MINUTE_MS = MINUTE_SECONDS * 1000

/**
 * The largest gap between two checks of an open read, which happen every minute. A larger or negative one
 * means that the clock was set or the machine slept, and nothing was read meanwhile.
 */
const GAP_MS_MAX = 10 * MINUTE_MS

/** The times of a streaming read, in milliseconds. */
export interface OpenReadTimes {
  /** The time at which the next operation is due. */
  readonly dueAt: number
  /** The time of the last check. */
  readonly checkedAt: number
}

/** The operations to count, and the times to keep. */
export interface DueOperations {
  /** The minute of each due operation, in seconds. */
  readonly minutes: readonly number[]
  readonly next: OpenReadTimes
}

/** Returns the times of a new streaming read, whose first operation is due at once. */
export function startOpenRead(now: number): OpenReadTimes {
  return { dueAt: now, checkedAt: now }
}

/**
 * The operations of a streaming read that became due since its last check: one when it opens and one for each
 * further full minute (docs/protocol.md "Metrics responses").
 */
export function dueOperations({ dueAt, checkedAt }: OpenReadTimes, now: number): DueOperations {
  const gap = now - checkedAt
  let next = Math.abs(gap) > GAP_MS_MAX ? dueAt + gap : dueAt
  const minutes: number[] = []
  for (; next <= now; next += MINUTE_MS) minutes.push(alignDown(next / 1000, MINUTE_SECONDS))
  return { minutes, next: { dueAt: next, checkedAt: now } }
}
