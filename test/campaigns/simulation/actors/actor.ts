/** A user of the engines, with one or several calls at a time. */
export interface Actor {
  readonly name: string
  /** Whether it waits for nothing. At the end of a run, every actor must be idle. */
  readonly isIdle: boolean
  /** Performs an action if one is possible. */
  act(): void
  /** Begins nothing new and ends what is open. */
  finish(): void
}
