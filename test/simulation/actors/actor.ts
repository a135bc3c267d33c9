/** Somebody who uses the engines, a call at a time or several. */
export interface Actor {
  readonly name: string
  /** Whether it waits for nothing: at the end of a run nobody may wait any more. */
  readonly isIdle: boolean
  /** Does something, if there is something that it can do. */
  act(): void
  /** Begins nothing new and ends what is open. */
  finish(): void
}
