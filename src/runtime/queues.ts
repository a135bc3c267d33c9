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

/** Items that were taken are dropped once they are so many and half of the list. */
const TAKEN_MIN = 32

/**
 * A queue whose operations take constant time on average, however long it is. `Array.shift` moves all other
 * items of a long array, so that emptying a queue of 200,000 items takes minutes.
 */
export class Fifo<Item> implements Iterable<Item> {
  #items: (Item | undefined)[] = []
  #taken = 0

  get length(): number {
    return this.#items.length - this.#taken
  }

  /** The first item, which the next `shift` takes; undefined if there is none. */
  get first(): Item | undefined {
    return this.#items[this.#taken]
  }

  push(item: Item): void {
    this.#items.push(item)
  }

  /** Takes the first item. Returns undefined if there is none. */
  shift(): Item | undefined {
    if (this.length === 0) return undefined
    const item = this.#items[this.#taken]
    // So that it can be collected.
    this.#items[this.#taken++] = undefined
    if (this.#taken >= TAKEN_MIN && 2 * this.#taken >= this.#items.length) {
      this.#items = this.#items.slice(this.#taken)
      this.#taken = 0
    }
    return item
  }

  clear(): Item[] {
    const items = this.#items.slice(this.#taken) as Item[]
    this.#items = []
    this.#taken = 0
    return items
  }

  *[Symbol.iterator](): Iterator<Item> {
    for (let index = this.#taken; index < this.#items.length; index++) yield this.#items[index] as Item
  }
}
