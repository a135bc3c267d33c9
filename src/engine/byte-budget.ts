/**
 * A first-come, first-served allowance of bytes: what is in flight stays within `bytes`, and who comes when it is used up waits. An
 * amount larger than the whole allowance is let through alone. Callbacks rather than promises, so that those who wait are let through
 * in the order in which they came, before anyone who comes later.
 */
export class ByteBudget {
  readonly #bytes: number
  #used = 0
  readonly #waiting: Waiting[] = []
  #admitting = false

  constructor(bytes: number) {
    this.#bytes = bytes
  }

  get used(): number {
    return this.#used
  }

  get waiting(): number {
    return this.#waiting.length
  }

  /** Calls `admitted` once the bytes are taken: at once if they are free. */
  acquire(bytes: number, admitted: () => void): void {
    if (this.#admitting || this.#waiting.length > 0 || !this.#fits(bytes)) {
      this.#waiting.push({ bytes, admitted })
      return
    }
    this.#used += bytes
    admitted()
  }

  release(bytes: number): void {
    this.#used -= bytes
    this.#admit()
  }

  #admit(): void {
    // Who releases or comes while another is told does not get in between: the loop that is under way sees to it.
    if (this.#admitting) return
    this.#admitting = true
    try {
      while (this.#waiting.length > 0 && this.#fits(this.#waiting[0]!.bytes)) {
        const next = this.#waiting.shift()!
        this.#used += next.bytes
        next.admitted()
      }
    } finally {
      this.#admitting = false
    }
  }

  #fits(bytes: number): boolean {
    return this.#used === 0 || this.#used + bytes <= this.#bytes
  }
}

interface Waiting {
  readonly bytes: number
  readonly admitted: () => void
}
