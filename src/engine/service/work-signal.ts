/** What background work can be asked for. */
export interface WorkRequests {
  /** When the timer of the periodic run counts as lost, in milliseconds. */
  readonly overdueAt: number
  /** Starts the periodic run again. */
  restart(): void
  /** Frees trimmed and deleted records at this time, in milliseconds, or soon after. */
  reclaimAt(time: number): void
  /** Completes the deletion of basins, now. */
  finishDeletions(): void
  /** Keeps the engine in memory, even if its owner drops it, as long as it is in use. */
  stayInMemory(): void
}

/**
 * Passes requests from the services to the background work, which itself calls the services. Requests before
 * `connect` are dropped.
 */
export class WorkSignal implements Omit<WorkRequests, 'overdueAt' | 'restart'> {
  /** Set by `connect`. */
  work: WorkRequests | undefined

  connect(work: WorkRequests): void {
    this.work = work
  }

  reclaimAt(time: number): void {
    this.work?.reclaimAt(time)
  }

  finishDeletions(): void {
    this.work?.finishDeletions()
  }

  stayInMemory(): void {
    this.work?.stayInMemory()
  }
}
