import type { StoredRecord } from '../stored-log.ts'
import type { StreamHistory } from '../stream-history.ts'
import { Violation } from '../violation.ts'

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

/** Whether the end that was requested for a stream has come. */
function hasExpired({ document, now }: StreamHistory, latestTime: number): boolean {
  const { expiry, createdAt = 0, readAt = 0 } = document ?? {}
  if (expiry === undefined) return false
  if ('at' in expiry) return expiry.at <= latestTime
  return Math.max(createdAt, now.appendedAt, readAt) + expiry.idleSeconds * 1000 <= latestTime
}

/**
 * A stream is removed only if its deletion was requested, if it has expired, or if it has delete-on-empty and has been empty for
 * long enough.
 */
export function checkDeletion(history: StreamHistory, latestTime: number): void {
  if (history.deletions.size > 0) return
  if (hasExpired(history, latestTime)) return
  const { name, now } = history
  const minAgeMs = (now.config?.deleteOnEmpty.minAgeSeconds ?? 0) * 1000
  const left = now.log!.records.find(
    ({ seqNum, extendedTo }) => seqNum >= now.trimPoint && !(extendedTo !== null && extendedTo <= latestTime),
  )
  if (minAgeMs > 0 && left === undefined && now.writtenAt + minAgeMs <= latestTime) return
  throw new Violation(
    `\`${name}\` has no request for its deletion`,
    `it is gone, with ${left === undefined ? 'no record' : `record ${left.seqNum}`}, ${latestTime - now.writtenAt} ms after it was last written to`,
  )
}
