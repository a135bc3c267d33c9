import type { EngineContext } from './context.ts'
import type { Reading } from './reading.ts'

/** Counts of what is open, for health pages and for tests that nothing is left behind. */
export interface EngineStats {
  /** Reads and append sessions, as far as `limits.openSessions` counts them. */
  readonly openSessions: number
  /** Read sessions and long polls. */
  readonly openReads: number
  /** Those of them that wait at the tail for a record. */
  readonly waitingReads: number
  readonly pendingAppends: number
  /** Metered bytes of the appends in flight. */
  readonly appendBytesInFlight: number
  /** Appends that wait for room among them. */
  readonly waitingAppends: number
  /** Metered bytes of the appends that are not in flight yet. */
  readonly waitingAppendBytes: number
  readonly cachedStreams: number
}

export function statsOf(
  { logs, appendBudget, pendingBytes, sessions }: EngineContext,
  reading: Reading,
): EngineStats {
  const all = [...logs.all()]
  return {
    openSessions: sessions.used,
    openReads: reading.open,
    waitingReads: all.reduce((sum, log) => sum + log.live.waiting, 0),
    pendingAppends: all.reduce((sum, log) => sum + log.pendingAppends, 0),
    appendBytesInFlight: appendBudget.used,
    waitingAppends: appendBudget.waiting,
    waitingAppendBytes: pendingBytes.used - appendBudget.used,
    cachedStreams: all.length,
  }
}
