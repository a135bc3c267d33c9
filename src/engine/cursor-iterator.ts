import { onAbort, unlessAborted } from './abort.ts'
import type { ReadCursor, ReadEvent } from './read-cursor.ts'

/**
 * A cursor, opened at the first `next`, as an asynchronous iterator. It can be ended while it waits, which an async generator function
 * can't: there `return()` lines up behind the pending `next()`.
 */
export class CursorIterator<Item> implements AsyncGenerator<Item, void, undefined> {
  readonly #open: () => Promise<ReadCursor | undefined>
  readonly #signal: AbortSignal | undefined
  readonly #itemOf: (event: ReadEvent) => Item
  #opened = false
  #ended = false
  /** The signal ended it, and nobody was told yet. */
  #aborted = false
  #cursor: ReadCursor | undefined
  #ignoreSignal: (() => void) | undefined
  /** The last `next`: calls that are not awaited take their turns. */
  #turn: Promise<unknown> = Promise.resolve()

  constructor(
    open: () => Promise<ReadCursor | undefined>,
    signal: AbortSignal | undefined,
    itemOf: (event: ReadEvent) => Item,
  ) {
    this.#open = open
    this.#signal = signal
    this.#itemOf = itemOf
  }

  next(): Promise<IteratorResult<Item, void>> {
    const result = this.#turn.then(() => this.#advance())
    this.#turn = result.catch(() => {})
    return result
  }

  async return(): Promise<IteratorResult<Item, void>> {
    this.#end()
    await this.#turn
    return { done: true, value: undefined }
  }

  async throw(error: unknown): Promise<IteratorResult<Item, void>> {
    await this.return()
    throw error
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return()
  }

  async #advance(): Promise<IteratorResult<Item, void>> {
    try {
      if (!this.#opened) await this.#openCursor()
      const event = this.#ended ? undefined : await this.#cursor?.next()
      if (event !== undefined) return { done: false, value: this.#itemOf(event) }
    } catch (error) {
      this.#aborted = false
      this.#end()
      throw error
    }
    this.#end()
    if (this.#aborted) {
      this.#aborted = false
      throw this.#signal?.reason
    }
    return { done: true, value: undefined }
  }

  async #openCursor(): Promise<void> {
    this.#opened = true
    if (this.#ended) return
    this.#signal?.throwIfAborted()
    if (this.#signal) this.#ignoreSignal = onAbort(this.#signal, () => this.#abort())
    const opening = this.#open()
    opening
      .then((cursor) => {
        if (this.#ended) cursor?.close()
      })
      .catch(() => {})
    this.#cursor = await unlessAborted(this.#signal, opening)
  }

  #abort(): void {
    this.#aborted = !this.#ended
    this.#end()
  }

  #end(): void {
    this.#ended = true
    this.#ignoreSignal?.()
    this.#cursor?.close()
  }
}
