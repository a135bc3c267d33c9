import { HeadwaterError } from '../model/errors.ts'
import { type AnySignal, unlessAborted } from './abort.ts'
import { trackExternalWork } from './clock.ts'

/** A part of the engine whose code is loaded on first use. */
export class LazyModule<Part> {
  readonly #name: string
  readonly #load: () => Promise<Part>
  #loading: Promise<Part> | undefined
  #part: Part | undefined

  /** `name` is for error messages. `load` contains the `import()`. */
  constructor(name: string, load: () => Promise<Part>) {
    this.#name = name
    this.#load = load
  }

  /** The part, or undefined until it is loaded. */
  get part(): Part | undefined {
    return this.#part
  }

  /**
   * Loads the part once. Rejects with `unavailable` if the code cannot be loaded, in which case the next call
   * tries again, and with the signal's reason if the signal aborts first.
   */
  load(signal?: AnySignal): Promise<Part> {
    this.#loading ??= this.#begin()
    if (this.#part !== undefined && signal?.aborted) return this.#loading
    // The same number of turns once it is loaded, so that later callers do not overtake earlier ones.
    return unlessAborted(signal, this.#loading)
  }

  async #begin(): Promise<Part> {
    try {
      this.#part = await trackExternalWork(this.#load())
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
