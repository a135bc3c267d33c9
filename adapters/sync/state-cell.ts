import { Observable, Subject } from 'rxjs'

/** A value that changes, and an observable of it that begins with the current one. */
export class StateCell<State> {
  readonly states$: Observable<State>
  #current: State
  readonly #changes = new Subject<State>()

  constructor(initial: State) {
    this.#current = initial
    this.states$ = new Observable((subscriber) => {
      subscriber.next(this.#current)
      return this.#changes.subscribe(subscriber)
    })
  }

  get current(): State {
    return this.#current
  }

  set(state: State): void {
    this.#current = state
    this.#changes.next(state)
  }

  /** Sets the last state. */
  end(state: State): void {
    this.set(state)
    this.#changes.complete()
  }
}
