/** The requests of services to the background work, which itself calls services. */
export interface WorkRequests {
  /** The time at which the timer of the periodic run counts as lost, in milliseconds. */
  readonly overdueAt: number
  /** Starts the periodic run again. */
  restart(): void
  /** Frees trimmed and deleted records at this time, in milliseconds, or soon after. */
  reclaimAt(time: number): void
  /** Deletes the streams of a basin that is marked as deleting. Rejects if that fails. */
  deleteStreams(basin: string): Promise<void>
  /** Completes the deletion of basins, now. */
  finishDeletions(): void
  /** Keeps the engine in memory, even if its owner drops it, as long as it is in use. */
  stayInMemory(): void
}
