import { StorageFailure } from '../../../src/storage/errors.ts'
import type { Connection } from './connection.ts'
import { loadRest } from './load-rest.ts'

/**
 * Some space that is put by. Where none is left, nothing could be trimmed either, nor could what was trimmed be freed, for both write a little:
 * then the reserve is given up for that, and nothing else is written until it could be put by again.
 */
export class Reserve {
  readonly #connection: Connection
  readonly #leaving: AbortSignal | undefined
  #isSpent = false

  /** `leaving` aborts when its code is not to be waited for any longer. */
  constructor(connection: Connection, leaving?: AbortSignal) {
    this.#connection = connection
    this.#leaving = leaving
  }

  /** Whether it was needed, or could not be put by. */
  get isSpent(): boolean {
    return this.#isSpent
  }

  /** Puts it by unless it is. Resolves to whether it is there, as far as is known. */
  async restore(): Promise<boolean> {
    try {
      const { putBy } = await loadRest(this.#leaving)
      await putBy(this.#connection)
      this.#isSpent = false
    } catch (error) {
      if (isQuota(error)) this.#isSpent = true
    }
    return !this.#isSpent
  }

  /** Does what makes room, with the reserve if it is needed. */
  async use<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await work()
    } catch (error) {
      if (!isQuota(error) || !(await this.#spend())) throw error
      return work()
    }
  }

  async #spend(): Promise<boolean> {
    const { giveUp } = await loadRest(this.#leaving)
    this.#isSpent = true
    return giveUp(this.#connection)
  }
}

/** There is no space, and nothing was written. */
export function isQuota(error: unknown): boolean {
  return StorageFailure.is(error) && error.kind === 'quota' && error.nothingWritten
}
