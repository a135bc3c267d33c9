import { HeadwaterError } from '../model/errors.ts'

/** A limited amount. Acquiring more than is left throws; a `ByteSemaphore` waits instead. */
export class RejectingQuota {
  readonly #option: string
  readonly #limit: number
  readonly #max: number
  #used = 0
  #onIdle: (() => void) | undefined

  /** Allows `limit + extra`. The error names `option` and `limit`. */
  constructor(option: string, limit: number, extra = 0) {
    this.#option = option
    this.#limit = limit
    this.#max = limit + extra
  }

  get used(): number {
    return this.#used
  }

  acquire(amount: number): void {
    if (this.#used + amount > this.#max) {
      const message = `limit exceeded: \`${this.#option}\` is ${this.#limit}; the request had no effect`
      throw new HeadwaterError('rate_limited', message, { field: this.#option })
    }
    this.#used += amount
  }

  release(amount: number): void {
    this.#used -= amount
    if (this.#used === 0) this.#onIdle?.()
  }

  /** Resolves when nothing is acquired. One call. */
  idle(): Promise<void> {
    return new Promise((resolve) => {
      this.#onIdle = resolve
      if (this.#used === 0) resolve()
    })
  }
}
