import { isPromise, type MaybePromise } from '../../runtime/maybe-promise.ts'

export interface Callbacks<Value> {
  readonly resolved: (value: Value) => void
  readonly rejected: (error: unknown) => void
}

interface Pending {
  readonly rejected: (error: unknown) => void
  /** Set once the value is settled. */
  deliver: (() => void) | undefined
}

/**
 * Delivers values in the order in which they were added, however long each takes. A value that is there at
 * once is delivered at once if none is pending. Uses callbacks, because promises would let a turn pass.
 */
export class OrderedDelivery {
  readonly #pending: Pending[] = []
  readonly #idle = new Set<() => void>()
  #end: { readonly error: unknown } | undefined

  get pending(): number {
    return this.#pending.length
  }

  /** The item that was added last; undefined if none is pending. */
  get newest(): Pending | undefined {
    return this.#pending.at(-1)
  }

  isPending(item: Pending): boolean {
    return this.#pending.includes(item)
  }

  add<Value>(start: () => MaybePromise<Value>, { resolved, rejected }: Callbacks<Value>): void {
    if (this.#end !== undefined) {
      rejected(this.#end.error)
      return
    }
    const item: Pending = { rejected, deliver: undefined }
    this.#pending.push(item)
    const settle = (deliver: () => void) => {
      item.deliver = deliver
      if (this.#pending[0] === item) this.#advance()
    }
    const onRejected = (error: unknown) => settle(() => rejected(error))
    try {
      const value = start()
      if (isPromise(value)) value.then((later) => settle(() => resolved(later)), onRejected)
      else settle(() => resolved(value))
    } catch (error) {
      onRejected(error)
    }
  }

  /** Resolves once nothing is pending. */
  idle(): Promise<void> {
    if (this.#pending.length === 0) return Promise.resolve()
    return new Promise((resolve) => this.#idle.add(resolve))
  }

  /**
   * Rejects everything pending, in order, and everything added later. Values that settle afterwards are
   * dropped.
   */
  end(error: unknown): void {
    this.#end = { error }
    for (const item of this.#pending) item.deliver ??= () => item.rejected(error)
    this.#advance()
  }

  #advance(): void {
    for (let first = this.#pending[0]; first?.deliver !== undefined; first = this.#pending[0]) {
      // Delivered before it is removed, so that a value added meanwhile is queued behind the others.
      first.deliver()
      this.#pending.shift()
    }
    if (this.#pending.length > 0) return
    for (const resolve of this.#idle) resolve()
    this.#idle.clear()
  }
}
