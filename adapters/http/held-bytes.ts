import type { Allowance } from '../../src/engine/allowance.ts'

/** What one request holds of an allowance. */
export class HeldBytes {
  readonly #allowance: Allowance
  #giveBack: () => void = () => {}

  constructor(allowance: Allowance) {
    this.#allowance = allowance
  }

  /** From now on it holds so many. Throws 429 `rate_limited` when that is too much, and holds none then. */
  set(bytes: number): void {
    this.release()
    this.#giveBack = this.#allowance.take(bytes)
  }

  release(): void {
    this.#giveBack()
    this.#giveBack = () => {}
  }
}
