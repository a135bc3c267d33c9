import type { Observer, Operator, OperatorFunction, Observable as RxObservable } from 'rxjs'
import { Subscriber, type Teardown } from './subscriber.ts'

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
