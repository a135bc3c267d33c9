import { Observable, type Subscriber } from 'rxjs'

/** Tells all who are subscribed at the moment; who comes after the end is told how it ended. What of RxJS's `Subject` is needed here, in a tenth of its size. */
export class Multicast<Value> {
  readonly observable: Observable<Value>
  readonly #subscribers = new Set<Subscriber<Value>>()
  #end: ((subscriber: Subscriber<Value>) => void) | undefined

  constructor() {
    this.observable = new Observable((subscriber) => {
      if (this.#end !== undefined) {
        this.#end(subscriber)
        return undefined
      }
      this.#subscribers.add(subscriber)
      return () => this.#subscribers.delete(subscriber)
    })
  }

  next(value: Value): void {
    // Who unsubscribes while others are told is not told, who subscribes is not told yet.
    for (const subscriber of [...this.#subscribers]) subscriber.next(value)
  }

  complete(): void {
    this.#finish((subscriber) => subscriber.complete())
  }

  error(error: unknown): void {
    this.#finish((subscriber) => subscriber.error(error))
  }

  #finish(end: (subscriber: Subscriber<Value>) => void): void {
    if (this.#end !== undefined) return
    this.#end = end
    const subscribers = [...this.#subscribers]
    this.#subscribers.clear()
    for (const subscriber of subscribers) end(subscriber)
  }
}
