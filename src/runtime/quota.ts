import { HeadwaterError } from '../model/errors.ts'

/** A limited amount. Acquiring more than is left throws; a {@link ByteSemaphore} waits instead. */
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

  /** Throws `rate_limited`. */
  acquire(amount: number): void {
    if (this.#used + amount > this.#max) {
      const message = `limit exceeded: \`${this.#option}\` is ${this.#limit.toLocaleString('en-US')}; the request had no effect`
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

/**
 * Limits the bytes in flight. Acquirers wait in the order of their calls; an amount larger than the limit is
 * admitted alone. Takes callbacks, because promises would admit a waiter a turn later and let another call
 * overtake it.
 */
export class ByteSemaphore {
  readonly #limit: number
  #used = 0
  readonly #waiters: Waiter[] = []
  #isAdmitting = false

  constructor(limit: number) {
    this.#limit = limit
  }

  get used(): number {
    return this.#used
  }

  get waiting(): number {
    return this.#waiters.length
  }

  /** Calls `admitted` once the bytes are acquired: synchronously if they are free. */
  acquire(bytes: number, admitted: () => void): void {
    if (this.tryAcquire(bytes)) admitted()
    else this.#waiters.push({ bytes, admitted })
  }

  /** Acquires the bytes if they are free and nothing waits. Returns whether it did. */
  tryAcquire(bytes: number): boolean {
    const isFree = this.#used === 0 || this.#used + bytes <= this.#limit
    if (!isFree || this.#isAdmitting || this.#waiters.length > 0) return false
    this.#used += bytes
    return true
  }

  release(bytes: number): void {
    this.#used -= bytes
    if (this.#waiters.length > 0) this.#admit()
  }

  #admit(): void {
    // A callback may release or acquire: the loop that is running handles both, so that nothing overtakes.
    if (this.#isAdmitting) return
    this.#isAdmitting = true
    try {
      while (this.#waiters.length > 0 && this.#fits(this.#waiters[0]!.bytes)) {
        const next = this.#waiters.shift()!
        this.#used += next.bytes
        next.admitted()
      }
    } finally {
      this.#isAdmitting = false
    }
  }

  #fits(bytes: number): boolean {
    return this.#used === 0 || this.#used + bytes <= this.#limit
  }
}

interface Waiter {
  readonly bytes: number
  readonly admitted: () => void
}
