/** Where all time comes from. `headwater/testing` has a virtual one. */
export interface Clock {
  /** Milliseconds since the Unix epoch. */
  now(): number
  /** Calls back once after `delayMs`. The returned function cancels; calling it late or twice does nothing. */
  schedule(delayMs: number, callback: () => void, options?: ScheduleOptions): () => void
}

export interface ScheduleOptions {
  /** Housekeeping: a process with nothing else to do may end before it is called. */
  readonly background?: boolean
}
