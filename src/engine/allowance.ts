import { HeadwaterError } from '../model/errors.ts'

/** How much of something there may be at a time. Who wants more is refused, where a `ByteBudget` lets them wait. */
export class Allowance {
  readonly #option: string
  readonly #limit: number
  readonly #most: number
  #used = 0

  /** As much as the option says, which the error names, and so much beside it. */
  constructor(option: string, limit: number, beside = 0) {
    this.#option = option
    this.#limit = limit
    this.#most = limit + beside
  }

  get used(): number {
    return this.#used
  }

  /** Takes an amount, until the function returned is called. Throws 429 `rate_limited` when that much is not left. */
  take(amount: number): () => void {
    const field = this.#option
    if (this.#used + amount > this.#most) {
      const message = `refused, and nothing was done: \`${field}\`, ${this.#limit}, is used up`
      throw new HeadwaterError('rate_limited', message, { field })
    }
    this.#used += amount
    let taken = amount
    return () => {
      this.#used -= taken
      taken = 0
    }
  }
}
