import { isPromise, type MaybePromise } from './maybe-promise.ts'

/** Runs asynchronous tasks one at a time, in the order of the calls. A failed task does not stop the next. */
export class SerialQueue {
  #last: Promise<unknown> = Promise.resolve()
  #pending = 0

  /** Runs `task` in a later turn, once every earlier task has settled. Settles as it does. */
  run<Result>(task: () => Promise<Result>): Promise<Result> {
    return this.#add(this.#last.then(task))
  }

  /** Does the same as `run`, but calls `task` synchronously if the queue is empty. */
  runAtOnce<Result>(task: () => MaybePromise<Result>): Promise<Result> {
    if (this.#pending > 0) return this.#add(this.#last.then(task))
    try {
      const result = task()
      return isPromise(result) ? this.#add(result) : Promise.resolve(result)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  #add<Result>(result: Promise<Result>): Promise<Result> {
    this.#pending++
    this.#last = result.then(this.#onSettled, this.#onSettled)
    return result
  }

  readonly #onSettled = (): void => {
    this.#pending--
  }
}
