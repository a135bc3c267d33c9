import { Violation } from '../../harness/violation.ts'
import type { StoredRecord, StreamHistory } from '../../model/stream-history.ts'

/** Records are freed only after they expired, or a grace after they were trimmed. */
export function checkFreed(
  { seqNum, extendedTo, mayBeFreed }: StoredRecord,
  { moments, now }: StreamHistory,
  trimGraceMs: number,
  { latestTime, deletionTime }: { readonly latestTime: number; readonly deletionTime: number },
): void {
  if (mayBeFreed || (extendedTo !== null && extendedTo <= deletionTime)) return
  // The first trim beyond it may come from an engine whose clock is ahead.
  const trims = moments.filter(({ log, trimPoint }) => log === now.log && trimPoint > seqNum)
  if (trims.some(({ trimmedAt }) => trimmedAt + trimGraceMs <= latestTime)) return
  throw new Violation(
    `record ${seqNum} is there: it expires at ${extendedTo}, and was trimmed at ${trims[0]?.trimmedAt}`,
    `at ${deletionTime} it is gone`,
  )
}

/** The earliest time at which a stream may be deleted because it has expired. */
function expiryOf({ document, now }: StreamHistory): number {
  const { expiry, createdAt = 0, readAt = 0 } = document ?? {}
  if (expiry === undefined) return Number.POSITIVE_INFINITY
  if ('at' in expiry) return expiry.at
  return Math.max(createdAt, now.appendedAt, readAt) + expiry.idleSeconds * 1000
}

/** How late a stream is deleted: its engine checks deadlines now and then, and idle time is not exact. */
const LATE_MS_MAX = 90_000

/** A stream that has expired is deleted. `earliestTime` is the least that an open engine may delete by. */
export function checkOverdue(history: StreamHistory, earliestTime: number): void {
  const overdueMs = earliestTime - expiryOf(history)
  if (history.now.log === undefined || overdueMs <= LATE_MS_MAX) return
  throw new Violation(`\`${history.name}\` is deleted when it expires`, `it is there ${overdueMs} ms later`)
}

/**
 * Returns why a stream was removed: its deletion was requested, it has expired, or it has delete-on-empty and
 * has been empty for long enough.
 */
export function checkDeletion(
  history: StreamHistory,
  latestTime: number,
): 'deleted' | 'expired' | 'deleted when empty' {
  if (expiryOf(history) <= latestTime) return 'expired'
  if (history.deletions.size > 0) return 'deleted'
  const { name, now } = history
  const minAgeMs = (now.config?.deleteOnEmpty.minAgeSeconds ?? 0) * 1000
  const left = now.log!.records.find(
    ({ seqNum, extendedTo, isFreed }) =>
      !isFreed && seqNum >= now.trimPoint && (extendedTo === null || extendedTo > latestTime),
  )
  if (minAgeMs > 0 && left === undefined && now.writtenAt + minAgeMs <= latestTime)
    return 'deleted when empty'
  throw new Violation(
    `\`${name}\` has no request for its deletion`,
    `it is gone, with ${left === undefined ? 'no record' : `record ${left.seqNum}`}, ${latestTime - now.writtenAt} ms after it was last written to`,
  )
}
