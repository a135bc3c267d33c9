import type { RetentionPolicy } from '../model/config.ts'
import { INTEGER_MAX } from '../model/limits.ts'

/**
 * The time in milliseconds at which records appended at `appendedAt` expire; null is never. It depends on the
 * time of the append, not on their timestamps, and on the policy at that time (docs/protocol.md "Retention").
 */
export function recordsExpireAt(policy: RetentionPolicy, appendedAt: number): number | null {
  return policy === 'infinite' ? null : Math.min(appendedAt + policy.ageSeconds * 1000, INTEGER_MAX)
}

/** Keeps records that were stored when their retention was lengthened (docs/protocol.md). Persisted. */
export interface RetentionExtension {
  /** Applies to records below this sequence number: above all, until the retention is shortened. */
  readonly below: number
  /** Applies to records that expire after this time, in milliseconds: others were about to be freed. */
  readonly after: number
  /** They are kept until this time at least, in milliseconds; null forever. */
  readonly until: number | null
}

/** The time at which a block expires; null for never. It is extended as a whole if its first record is. */
export function blockExpiresAt(
  { firstSeqNum, expiresAt }: { readonly firstSeqNum: number; readonly expiresAt: number | null },
  extensions: readonly RetentionExtension[] | undefined,
): number | null {
  let latest = expiresAt
  for (const { below, after, until } of extensions ?? []) {
    if (firstSeqNum < below && expiresAt !== null && expiresAt > after) latest = laterOf(latest, until)
  }
  return latest
}

/** The later of two times; null is never. */
export function laterOf(a: number | null, b: number | null): number | null {
  return a === null || b === null ? null : Math.max(a, b)
}

/** Whether a block that expires at a time, in milliseconds, has expired. */
export function isBlockExpired(expiresAt: number | null, now: number): boolean {
  return isPast(expiresAt, now)
}

/** A trim whose records may still be read within its grace period. */
export interface Trim {
  /** Records below it are trimmed. */
  readonly point: number
  /** The time of the trim, in milliseconds. */
  readonly at: number
}

/**
 * Adds a trim to those of a stream, in ascending order and at most three: the last one past its grace, the
 * first one within it, and the new one. Keeping only the newest would never free anything in a stream that is
 * trimmed more often than once per grace period. A trim that is dropped counts from the time of the newest,
 * less than a grace period later: never early, and within two grace periods.
 */
export function addTrim(trims: readonly Trim[], trim: Trim, graceMs: number): readonly Trim[] {
  const settled = trims.filter(({ at }) => at <= trim.at - graceMs)
  const pending = trims.filter(({ at }) => at > trim.at - graceMs)
  return [...settled.slice(-1), ...pending.slice(0, 1), trim]
}

/**
 * The sequence number below which records may be freed, and are no longer read: the furthest trim made at or
 * before `before`, in milliseconds.
 */
export function reclaimablePoint(trims: readonly Trim[], before: number): number {
  return trims.reduce((point, trim) => (trim.at <= before ? Math.max(point, trim.point) : point), 0)
}

/** Returns when a block of a log can be freed: after a trim, and by its expiry; null for never. */
export function reclaimTimes(
  block: { readonly firstSeqNum: number; readonly endSeqNum: number; readonly expiresAt: number | null },
  log: { readonly trims: readonly Trim[]; readonly extensions?: readonly RetentionExtension[] | undefined },
): { readonly trimmedAt: number | null; readonly expiresAt: number | null } {
  const trim = log.trims.find(({ point }) => point >= block.endSeqNum)
  return { trimmedAt: trim?.at ?? null, expiresAt: blockExpiresAt(block, log.extensions) }
}

export function isReclaimable(
  { trimmedAt, expiresAt }: ReturnType<typeof reclaimTimes>,
  { now, trimmedBefore }: { readonly now: number; readonly trimmedBefore: number },
): boolean {
  return isPast(trimmedAt, trimmedBefore) || isPast(expiresAt, now)
}

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
  const current = extensions.filter(({ until }) => !isPast(until, now))
  if (!isLonger) return current.map((one) => ({ ...one, below: Math.min(one.below, tailSeqNum) }))
  const after = now + EXTENSION_MARGIN_MS
  const until = recordsExpireAt(to, now)
  // What an earlier extension keeps is extended as well, unless that is about to end.
  const longer = current.map((one) =>
    isPast(one.until, after) ? one : { ...one, until: laterOf(one.until, until) },
  )
  const isCovered = longer.some(
    (one) => one.below === INTEGER_MAX && one.after <= after && laterOf(one.until, until) === one.until,
  )
  return bounded(isCovered ? longer : [...longer, { below: INTEGER_MAX, after, until }])
}

function isPast(time: number | null, now: number): boolean {
  return time !== null && time <= now
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
