import type { ReadBudget } from '../log/read-budget.ts'
import type { StreamTable } from '../streams/table.ts'
import type { Admission } from './admission.ts'
import type { ReadService } from './read-service.ts'

/** Counts of what is open in an engine. */
export interface EngineStats {
  /** Reads and append sessions, as limited by `limits.openSessions`. */
  readonly openSessions: number
  /** Read sessions and unary reads. */
  readonly openReads: number
  /** Reads that wait at the tail for a record. */
  readonly waitingReads: number
  /** Bytes that open reads hold, of `limits.readBufferBytes`; an estimate. */
  readonly readBufferBytes: number
  /** Appends that have not settled. */
  readonly pendingAppends: number
  /** Metered bytes of the appends in flight. */
  readonly appendBytesInFlight: number
  /** Appends that wait for bytes in flight. */
  readonly waitingAppends: number
  /** Metered bytes of the appends that are not in flight. */
  readonly waitingAppendBytes: number
  /** Streams in the table. */
  readonly cachedStreams: number
  /**
   * Whether an append failed with `storage_full`, and none as large has succeeded since, as far as the
   * storage knows. Reads, trims and deletions still work.
   */
  readonly storageFull: boolean
  /**
   * How far the clock of the storage is ahead of that of this process, in milliseconds; 0 if it has none. The
   * engine uses the time of the storage.
   */
  readonly clockOffsetMs: number
  /** Whether expired records are kept until it is certain that the clock is right (docs/guarantees.md). */
  readonly expiryPaused: boolean
  /** Streams of which the storage has lost confirmed records, as a lagging replica does that takes over. */
  readonly lostTails: number
}

/** The reports of the storage and of background work. */
type StorageStats = Pick<EngineStats, 'storageFull' | 'clockOffsetMs' | 'expiryPaused' | 'lostTails'>

export function statsOf(
  table: StreamTable,
  admission: Admission,
  reads: ReadService,
  readBudget: ReadBudget,
  storage: StorageStats,
): EngineStats {
  const logs = [...table.all()]
  return {
    openSessions: admission.openSessions,
    openReads: reads.openReads,
    waitingReads: logs.reduce((sum, log) => sum + log.waiting, 0),
    readBufferBytes: readBudget.used,
    pendingAppends: logs.reduce((sum, log) => sum + log.pendingAppends, 0),
    appendBytesInFlight: admission.inFlightBytes,
    waitingAppends: admission.waitingAppends,
    waitingAppendBytes: admission.waitingBytes,
    cachedStreams: table.size,
    ...storage,
  }
}
