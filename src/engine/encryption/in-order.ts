import { isPromise, type MaybePromise } from './cipher-suite.ts'

/** Called with what became of it. */
export interface Outcome<Value> {
  readonly resolved: (value: Value) => void
  readonly rejected: (error: unknown) => void
}

interface Waiting {
  readonly rejected: (error: unknown) => void
  /** Set once it is known what became of it. */
  tell: (() => void) | undefined
}

/**
 * Tells what becomes of values in the order in which they were handed in, however late some of them come. What is there at once is told at
 * once when nothing waits. Callbacks rather than promises: no turn passes in between.
 */
export class InOrder {
  readonly #waiting: Waiting[] = []
  readonly #idle = new Set<() => void>()
  #end: { readonly error: unknown } | undefined

  get pending(): number {
    return this.#waiting.length
  }

  add<Value>(start: () => MaybePromise<Value>, { resolved, rejected }: Outcome<Value>): void {
    if (this.#end !== undefined) {
      rejected(this.#end.error)
      return
    }
    const one: Waiting = { rejected, tell: undefined }
    this.#waiting.push(one)
    const settle = (tell: () => void) => {
      one.tell = tell
      if (this.#waiting[0] === one) this.#advance()
    }
    const onRejected = (error: unknown) => settle(() => rejected(error))
    try {
      const value = start()
      if (isPromise(value)) value.then((late) => settle(() => resolved(late)), onRejected)
      else settle(() => resolved(value))
    } catch (error) {
      onRejected(error)
    }
  }

  /** Resolves once nothing waits. */
  idle(): Promise<void> {
    if (this.#waiting.length === 0) return Promise.resolve()
    return new Promise((resolve) => this.#idle.add(resolve))
  }

  /** Rejects what waits, in order, and what comes from now on. What becomes of it later is told to nobody. */
  end(error: unknown): void {
    this.#end = { error }
    for (const one of this.#waiting) one.tell ??= () => one.rejected(error)
    this.#advance()
  }

  #advance(): void {
    for (let first = this.#waiting[0]; first?.tell !== undefined; first = this.#waiting[0]) {
      // Told before it leaves: what is added meanwhile comes behind those that wait already.
      first.tell()
      this.#waiting.shift()
    }
    if (this.#waiting.length > 0) return
    for (const resolve of this.#idle) resolve()
    this.#idle.clear()
  }
}
