import type { RetentionPolicy } from '../model/config.ts'
import { INTEGER_MAX } from '../model/limits.ts'
import { expiryOf, isExpired, laterOf, type RetentionExtension } from './retention.ts'

/**
 * Records with less than this left, in milliseconds, are not extended, because an engine whose clock is ahead
 * may free them at the same time.
 */
const EXTENSION_MARGIN_MS = 2_000
/** Beyond it, the oldest are united, which may keep records longer, but never shorter. */
const EXTENSIONS_MAX = 4

/**
 * The extensions of a log after its retention changes. `tailSeqNum` is the tail at a time when `from` was in
 * force, and need not be the latest: records that are appended after it under `from` outlive the extensions
 * that apply to all records.
 */
export function extendRetention(
  extensions: readonly RetentionExtension[],
  { from, to }: { readonly from: RetentionPolicy; readonly to: RetentionPolicy },
  tailSeqNum: number,
  now: number,
): readonly RetentionExtension[] {
  const isLonger = ageOf(to) > ageOf(from)
  if (ageOf(to) === ageOf(from) || (extensions.length === 0 && !isLonger)) return extensions
  const current = extensions.filter(({ until }) => !isExpired(until, now))
  if (!isLonger) return current.map((one) => ({ ...one, below: Math.min(one.below, tailSeqNum) }))
  const after = now + EXTENSION_MARGIN_MS
  const until = expiryOf(to, now)
  // What an earlier extension keeps is extended as well, unless that is about to end.
  const longer = current.map((one) =>
    isExpired(one.until, after) ? one : { ...one, until: laterOf(one.until, until) },
  )
  const isCovered = longer.some(
    (one) => one.below === INTEGER_MAX && one.after <= after && laterOf(one.until, until) === one.until,
  )
  return bounded(isCovered ? longer : [...longer, { below: INTEGER_MAX, after, until }])
}

function ageOf(policy: RetentionPolicy): number {
  return policy === 'infinite' ? Number.POSITIVE_INFINITY : policy.ageSeconds
}

function bounded(extensions: readonly RetentionExtension[]): readonly RetentionExtension[] {
  const [first, second, ...others] = extensions
  if (extensions.length <= EXTENSIONS_MAX || first === undefined || second === undefined) return extensions
  const united = {
    below: Math.max(first.below, second.below),
    after: Math.min(first.after, second.after),
    until: laterOf(first.until, second.until),
  }
  return [united, ...others]
}
