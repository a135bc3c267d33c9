import { HeadwaterError } from '../model/errors.ts'
import { Fifo } from './queues.ts'

/**
 * Limits the bytes in flight. Acquirers wait in the order of their calls; an amount larger than the limit is
 * admitted alone. Takes callbacks, because promises would admit a waiter a turn later and let another call
 * overtake it.
 */
export class ByteSemaphore {
  readonly #limit: number
  readonly #lent: () => number
  #used = 0
  readonly #waiters = new Fifo<Waiter>()
  #isAdmitting = false

  /** `lent` returns how much of the limit is used elsewhere; `admit` follows when that is less. */
  constructor(limit: number, lent: () => number = () => 0) {
    this.#limit = limit
    this.#lent = lent
  }

  get used(): number {
    return this.#used
  }

  /** The bytes in use beyond the limit. */
  get excess(): number {
    return Math.max(0, this.#used - this.#limit)
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
    if (!this.#fits(bytes) || this.#isAdmitting || this.#waiters.length > 0) return false
    this.#used += bytes
    return true
  }

  /** Acquires the bytes without waiting, even if that exceeds the limit. */
  exceed(bytes: number): void {
    this.#used += bytes
  }

  release(bytes: number): void {
    this.#used -= bytes
    this.admit()
  }

  /** Admits the waiters that fit. */
  admit(): void {
    // A callback may release or acquire: the loop that is running handles both, so that nothing overtakes.
    if (this.#isAdmitting) return
    this.#isAdmitting = true
    try {
      while (this.#waiters.length > 0 && this.#fits(this.#waiters.first!.bytes)) {
        const next = this.#waiters.shift()!
        this.#used += next.bytes
        next.admitted()
      }
    } finally {
      this.#isAdmitting = false
    }
  }

  #fits(bytes: number): boolean {
    const used = this.#used + this.#lent()
    return used === 0 || used + bytes <= this.#limit
  }
}

interface Waiter {
  readonly bytes: number
  readonly admitted: () => void
}

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
