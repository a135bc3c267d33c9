import type { RetentionPolicy } from '../model/config.ts'
import { INTEGER_MAX } from '../model/limits.ts'

/**
 * When records appended at `appendedAt` expire, in milliseconds; null is never. Only the time of the append counts, not the records'
 * timestamps, and the policy of that time sticks (wire-behaviour.md 4.6).
 */
export function expiryOf(policy: RetentionPolicy, appendedAt: number): number | null {
  return policy === 'infinite' ? null : Math.min(appendedAt + policy.ageSeconds * 1000, INTEGER_MAX)
}

export function isExpired(expiresAt: number | null, now: number): boolean {
  return expiresAt !== null && expiresAt <= now
}

/** How long to leave a stream alone that still held records when it was looked at, in milliseconds. */
const NON_EMPTY_RECHECK_MS_MIN = 60_000

/**
 * Whether a stream with delete-on-empty goes now, or when to look again (wire-behaviour.md 8.8): it goes when it holds no record and
 * nothing was written, its creation included, for the configured age. Null: the option is off.
 */
export function decideDeleteOnEmpty(
  stream: { readonly minAgeSeconds: number; readonly hasRecords: boolean; readonly lastWriteAt: number },
  now: number,
): 'delete' | { readonly checkAt: number } | null {
  if (stream.minAgeSeconds === 0) return null
  const minAgeMs = Math.min(stream.minAgeSeconds * 1000, INTEGER_MAX - now)
  const idleAt = stream.lastWriteAt + minAgeMs
  if (!stream.hasRecords && now >= idleAt) return 'delete'
  if (!stream.hasRecords) return { checkAt: idleAt }
  return { checkAt: Math.max(idleAt, now + Math.min(minAgeMs, NON_EMPTY_RECHECK_MS_MIN)) }
}
