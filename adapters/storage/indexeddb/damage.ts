import { StorageFailure } from '../../../src/storage/errors.ts'

/** What is found to be damaged in the course of work on many things, of which the others are whole. */
export class Damage {
  #first: StorageFailure | undefined

  get first(): StorageFailure | undefined {
    return this.#first
  }

  /** Resolves to whether the work was done, and not kept from it by damage. */
  async meet(work: () => Promise<unknown>): Promise<boolean> {
    try {
      await work()
      return true
    } catch (error) {
      return this.#keep(error)
    }
  }

  /** The same for work that is done at once. */
  meetNow(work: () => void): boolean {
    try {
      work()
      return true
    } catch (error) {
      return this.#keep(error)
    }
  }

  #keep(error: unknown): false {
    if (!StorageFailure.is(error) || error.kind !== 'corrupt') throw error
    this.#first ??= error
    return false
  }
}
