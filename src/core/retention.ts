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
