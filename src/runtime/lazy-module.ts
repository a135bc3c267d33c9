import { HeadwaterError } from '../model/errors.ts'
import { trackExternalWork } from './clock.ts'

/** A part of the engine whose code is loaded on first use. */
export class LazyModule<Part> {
  readonly #name: string
  readonly #load: () => Promise<Part>
  #loading: Promise<Part> | undefined
  /** The part, or undefined until it is loaded. Set by this class only. */
  part: Part | undefined

  /** `name` is for error messages. `load` contains the `import()`. */
  constructor(name: string, load: () => Promise<Part>) {
    this.#name = name
    this.#load = load
  }

  /** The part that is being loaded; undefined before and after that. */
  get loading(): Promise<Part> | undefined {
    return this.part === undefined ? this.#loading : undefined
  }

  /**
   * Loads the part once. Rejects with `unavailable` if the code cannot be loaded, in which case the next call
   * tries again.
   */
  load(): Promise<Part> {
    // The same promise once it is loaded, so that later callers do not overtake earlier ones.
    this.#loading ??= this.#begin()
    return this.#loading
  }

  async #begin(): Promise<Part> {
    try {
      this.part = await loaded(this.#name, this.#load())
      return this.part
    } catch (error) {
      this.#loading = undefined
      throw error
    }
  }
}

/** Resolves to a module, or to what it provides. Rejects with `unavailable`, which names its subject. */
export async function loaded<Module>(subject: string, loading: Promise<Module>): Promise<Module> {
  try {
    return await trackExternalWork(loading)
  } catch (cause) {
    const message = `${subject} could not be loaded`
    throw new HeadwaterError('unavailable', message, { mayHaveEffects: false, cause })
  }
}
