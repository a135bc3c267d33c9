import type { SimulatedEngine } from '../simulated-engine.ts'

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
