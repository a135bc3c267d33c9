import type { SimulatedEngine } from '../simulated-engine.ts'

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

/** The sessions or producers of an actor that are being closed. */
export class Closings {
  #count = 0

  get areDone(): boolean {
    return this.#count === 0
  }

  /** Sessions of a dead engine are not closed. */
  begin(engine: SimulatedEngine, close: () => Promise<unknown>): void {
    if (engine.isCrashed) return
    this.#count++
    const done = () => {
      this.#count--
    }
    engine.call(close(), { done, failed: done, lost: done })
  }
}
