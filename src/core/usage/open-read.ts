import { alignDown, MINUTE_SECONDS } from './tiers.ts'

const MINUTE_MS = MINUTE_SECONDS * 1000

/**
 * Open reads are looked at every minute: a longer gap than this, or one backwards, is a clock that was set or a machine that slept. During
 * neither was anything read.
 */
const GAP_MS_MAX = 10 * MINUTE_MS

/** Where a streaming read stands, in milliseconds. */
export interface OpenReadTimes {
  /** When its next operation falls due. */
  readonly dueAt: number
  /** When it was looked at last. */
  readonly seenAt: number
}

export interface DueOperations {
  /** The minute of each operation that fell due, in seconds. */
  readonly minutes: readonly number[]
  readonly next: OpenReadTimes
}

/** A streaming read that opens: its first operation is due at once. */
export function opened(now: number): OpenReadTimes {
  return { dueAt: now, seenAt: now }
}

/**
 * The operations of a streaming read that fell due since it was looked at: one when it opens, one more for each further full minute
 * (wire-behaviour.md 11.3).
 */
export function dueOperations({ dueAt, seenAt }: OpenReadTimes, now: number): DueOperations {
  const gap = now - seenAt
  let next = Math.abs(gap) > GAP_MS_MAX ? dueAt + gap : dueAt
  const minutes: number[] = []
  for (; next <= now; next += MINUTE_MS) minutes.push(alignDown(next / 1000, MINUTE_SECONDS))
  return { minutes, next: { dueAt: next, seenAt: now } }
}
