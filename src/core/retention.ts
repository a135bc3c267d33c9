import type { RetentionPolicy } from '../model/config.ts'
import { INTEGER_MAX } from '../model/limits.ts'

/**
 * The time in milliseconds at which records appended at `appendedAt` expire; null is never. It depends on the
 * time of the append, not on their timestamps, and on the policy at that time (docs/protocol.md "Retention").
 */
export function expiryOf(policy: RetentionPolicy, appendedAt: number): number | null {
  return policy === 'infinite' ? null : Math.min(appendedAt + policy.ageSeconds * 1000, INTEGER_MAX)
}

/** Whether an expiry has passed. */
export function isExpired(expiresAt: number | null, now: number): boolean {
  return expiresAt !== null && expiresAt <= now
}

/**
 * The longest time between two checks of a stream, in milliseconds. It bounds how late a shortened age takes
 * effect, and how long the deadline of a deleted stream remains.
 */
const RECHECK_MS_MAX = 3_600_000

/** The time of the first check of a stream with delete-on-empty. */
export function firstCheckAt(minAgeSeconds: number, now: number): number {
  return now + Math.min(minAgeSeconds * 1000, RECHECK_MS_MAX)
}

/**
 * Decides whether to delete a stream with delete-on-empty, or when to check it again: it is deleted if it has
 * no records and was neither created nor appended to for the configured age (docs/protocol.md "Delete on
 * empty"). Null if the option is off. Times are in milliseconds.
 */
export function decideDeleteOnEmpty(
  stream: { readonly minAgeSeconds: number; readonly hasRecords: boolean; readonly lastWriteAt: number },
  now: number,
): 'delete' | { readonly checkAt: number } | null {
  if (stream.minAgeSeconds === 0) return null
  const idleAt = stream.lastWriteAt + stream.minAgeSeconds * 1000
  if (!stream.hasRecords && now >= idleAt) return 'delete'
  const earliest = stream.hasRecords ? firstCheckAt(stream.minAgeSeconds, now) : idleAt
  return { checkAt: Math.min(Math.max(earliest, idleAt), now + RECHECK_MS_MAX) }
}

/** A trim whose records may still be read by sessions that were opened before it. */
export interface Trim {
  /** Records below it are trimmed. */
  readonly point: number
  /** The time of the trim, in milliseconds. */
  readonly at: number
}

/**
 * Adds a trim to those of a stream, in ascending order and at most three: the last one past its grace, the
 * first one within it, and the new one. Keeping only the newest would never free anything in a stream that is
 * trimmed more often than once per grace period.
 */
export function addTrim(trims: readonly Trim[], trim: Trim, graceMs: number): readonly Trim[] {
  const settled = trims.filter(({ at }) => at <= trim.at - graceMs)
  const pending = trims.filter(({ at }) => at > trim.at - graceMs)
  return [...settled.slice(-1), ...pending.slice(0, 1), trim]
}

/**
 * The sequence number below which records may be freed: the furthest trim made at or before `before`, in
 * milliseconds.
 */
export function reclaimablePoint(trims: readonly Trim[], before: number): number {
  return trims.reduce((point, trim) => (trim.at <= before ? Math.max(point, trim.point) : point), 0)
}
