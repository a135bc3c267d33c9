import type { Observer, Operator, OperatorFunction, Observable as RxObservable } from 'rxjs'

/** Libraries ask for one of these, depending on whether the symbol exists when they are loaded. */
const INTEROP_NAME = '@@observable'
const { observable: INTEROP_SYMBOL = INTEROP_NAME } = Symbol as { readonly observable?: symbol | undefined }

type Next<Value> = ((value: Value) => void) | null | undefined

/**
 * An observable that RxJS accepts: its operators, `from`, `isObservable` and `firstValueFrom` work with it.
 * The class of RxJS itself is four times as large, and takes as long to load in Node as the rest of the
 * engine.
 */
class InteropObservable<Value> {
  source: InteropObservable<unknown> | undefined
  operator: Operator<unknown, Value> | undefined
  readonly #subscribe: ((subscriber: Subscriber<Value>) => Teardown | undefined) | undefined

  constructor(subscribe?: (subscriber: Subscriber<Value>) => Teardown | undefined) {
    this.#subscribe = subscribe
  }

  subscribe(
    observer?: Partial<Observer<Value>> | Next<Value>,
    error?: ((error: unknown) => void) | null,
    complete?: (() => void) | null,
  ): Subscriber<Value> {
    const subscriber = isSubscriber<Value>(observer)
      ? observer
      : new Subscriber<Value>(observerOf(observer, error, complete))
    subscriber.add(this.#begin(subscriber))
    return subscriber
  }

  forEach(next: (value: Value) => void): Promise<void> {
    return new Promise((resolve, reject) => {
      const subscriber = new Subscriber<Value>({
        next: (value) => {
          try {
            next(value)
          } catch (error) {
            reject(error)
            subscriber.unsubscribe()
          }
        },
        error: reject,
        complete: resolve,
      })
      this.subscribe(subscriber)
    })
  }

  pipe(...operations: readonly OperatorFunction<unknown, unknown>[]): unknown {
    return operations.reduce<unknown>((piped, operation) => operation(piped as RxObservable<unknown>), this)
  }

  /** Operators make their observables with it. */
  lift<Result>(operator?: Operator<Value, Result>): InteropObservable<Result> {
    const lifted = new InteropObservable<Result>()
    lifted.source = this as InteropObservable<unknown>
    lifted.operator = operator as Operator<unknown, Result> | undefined
    return lifted
  }

  toPromise(): Promise<Value | undefined> {
    let last: Value | undefined
    return this.forEach((value) => {
      last = value
    }).then(() => last)
  }

  [INTEROP_NAME](): this {
    return this
  }

  [INTEROP_SYMBOL](): this {
    return this
  }

  #begin(subscriber: Subscriber<Value>): Teardown | undefined {
    const { operator, source } = this
    if (operator !== undefined) return operator.call(subscriber as never, source) as Teardown | undefined
    if (source !== undefined) return (source as InteropObservable<Value>).subscribe(subscriber)
    try {
      return this.#subscribe?.(subscriber)
    } catch (error) {
      subscriber.error(error)
      return undefined
    }
  }
}

export type Observable<Value> = RxObservable<Value>

/** The class under the type that RxJS declares. */
export const Observable = InteropObservable as unknown as typeof RxObservable

function observerOf<Value>(
  observer: Partial<Observer<Value>> | Next<Value>,
  error: ((error: unknown) => void) | null | undefined,
  complete: (() => void) | null | undefined,
): Partial<Observer<Value>> {
  if (typeof observer === 'object' && observer !== null) return observer
  return {
    ...(observer && { next: observer }),
    ...(error && { error }),
    ...(complete && { complete }),
  }
}

/** Whether it is a subscriber: of this class, or of a copy of RxJS. */
function isSubscriber<Value>(value: unknown): value is Subscriber<Value> {
  const { next, error, complete, add, remove, unsubscribe } = Object(value) as Record<string, unknown>
  const members = [next, error, complete, add, remove, unsubscribe]
  return members.every((member) => typeof member === 'function') && 'closed' in Object(value)
}

/** Ends something: a function, or a subscription. */
type Teardown = (() => void) | { readonly closed?: boolean | undefined; unsubscribe(): void }

/** How many teardowns are kept before those of ended subscriptions are dropped. */
const KEPT_MIN = 16

/**
 * An observer with its subscription: the counterpart of the `Subscriber` of RxJS, whose operators accept it
 * as their destination.
 */
class Subscriber<Value> implements Observer<Value> {
  /** Says whether it has ended, so that nothing is received any more. */
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
