import type { Observer } from 'rxjs'

/** Ends something: a function, or a subscription. */
export type Teardown = (() => void) | { readonly closed?: boolean | undefined; unsubscribe(): void }

/** How many teardowns are kept before those of ended subscriptions are dropped. */
const KEPT_MIN = 16

/**
 * An observer with its subscription: the counterpart of the `Subscriber` of RxJS, whose operators accept it
 * as their destination.
 */
export class Subscriber<Value> implements Observer<Value> {
  /** Whether it has ended: nothing is received any more. */
  closed = false
  readonly #observer: Partial<Observer<Value>>
  readonly #teardowns = new Set<Teardown>()
  #keptMax = KEPT_MIN
  /** An end was received, though the observer may not know it yet. */
  #isStopped = false

  constructor(observer: Partial<Observer<Value>>) {
    this.#observer = observer
  }

  next(value: Value): void {
    if (this.#isStopped) return
    try {
      this.#observer.next?.(value)
    } catch (error) {
      reportUnhandled(error)
    }
  }

  error(error: unknown): void {
    this.#end(() => {
      if (this.#observer.error) this.#observer.error(error)
      else reportUnhandled(error)
    })
  }

  complete(): void {
    this.#end(() => this.#observer.complete?.())
  }

  /** Runs the teardown at the end: now if that has come. */
  add(teardown: Teardown | undefined): void {
    if (!teardown || teardown === this) return
    if (this.closed) run(teardown)
    else if (typeof teardown === 'function' || !teardown.closed) this.#keep(teardown)
  }

  /** Forgets a teardown. */
  remove(teardown: Teardown): void {
    this.#teardowns.delete(teardown)
  }

  /** Ends it. Throws what teardowns throw, after all of them have run. */
  unsubscribe(): void {
    if (this.closed) return
    this.closed = true
    this.#isStopped = true
    const errors: unknown[] = []
    for (const teardown of this.#teardowns) {
      try {
        run(teardown)
      } catch (error) {
        errors.push(error)
      }
    }
    this.#teardowns.clear()
    if (errors.length > 0) throw new AggregateError(errors, 'teardowns of a subscription failed')
  }

  #end(notify: () => void): void {
    if (this.#isStopped) return
    this.#isStopped = true
    try {
      notify()
    } catch (error) {
      reportUnhandled(error)
    } finally {
      this.unsubscribe()
    }
  }

  /** Operators add a subscription for each inner observable, and do not remove it when that ends. */
  #keep(teardown: Teardown): void {
    if (this.#teardowns.size >= this.#keptMax) {
      for (const kept of this.#teardowns) if (typeof kept !== 'function' && kept.closed) this.remove(kept)
      this.#keptMax = Math.max(KEPT_MIN, 2 * this.#teardowns.size)
    }
    this.#teardowns.add(teardown)
  }
}

function run(teardown: Teardown): void {
  if (typeof teardown === 'function') teardown()
  else teardown.unsubscribe()
}

/** Throws where no caller can catch it, so that the runtime reports it. */
function reportUnhandled(error: unknown): void {
  setTimeout(() => {
    throw error
  })
}
