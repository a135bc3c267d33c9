import { HeadwaterError } from '../model/errors.ts'
import { unclocked } from '../storage/unclocked.ts'
import { unlessAborted } from './abort.ts'

/** A part of the engine whose code is loaded when it is first needed: a page that never needs it does not load it. */
export class Late<Part> {
  readonly #name: string
  readonly #load: () => Promise<Part>
  #loading: Promise<Part> | undefined
  #part: Part | undefined

  /** The name is for the error. `load` holds the `import()`. */
  constructor(name: string, load: () => Promise<Part>) {
    this.#name = name
    this.#load = load
  }

  /** Undefined until it is loaded. */
  get part(): Part | undefined {
    return this.#part
  }

  /**
   * Loads it, unless that was done. Rejects with `unavailable` when the code cannot be had, after which the next call tries again, and with the
   * reason of a signal that does not wait for it any longer.
   */
  load(ending?: AbortSignal): Promise<Part> {
    this.#loading ??= this.#begin()
    if (this.#part !== undefined && ending?.aborted) return this.#loading
    // In the same way once it is there: who comes then must not get ahead of those who still wait their turn.
    return unlessAborted(ending, this.#loading)
  }

  async #begin(): Promise<Part> {
    try {
      this.#part = await unclocked(this.#load())
      return this.#part
    } catch (cause) {
      this.#loading = undefined
      throw new HeadwaterError('unavailable', `${this.#name} could not be loaded`, {
        mayHaveEffects: false,
        cause,
      })
    }
  }
}
