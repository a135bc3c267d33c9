import type { Clock } from '../runtime/clock.ts'

/** The surroundings that an engine passes to a storage. */
export interface StorageContext {
  /** The source of all times and timers of the storage. */
  readonly clock: Clock
  /**
   * Called after another engine appended to a log, changed its epoch, created or deleted it. May also be
   * called for changes by this engine. Must not be called synchronously within a call of the engine.
   */
  readonly onLogChanged: (logId: string) => void
  /**
   * Called when the storage may have lost confirmed appends, such as after a failover, before a call returns
   * anything newer. The engine then compares what it knows with the storage.
   */
  readonly onHistoryChanged?: (() => void) | undefined
  /** Receives errors and warnings that belong to no call. */
  readonly onBackgroundError?: ((error: unknown) => void) | undefined
}
