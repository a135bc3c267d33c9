import type { ReadPolicy } from '../core/read-plan.ts'
import type { StreamTail } from '../model/position.ts'
import { onAbort, unlessAborted } from '../runtime/abort.ts'
import { isPromise, type MaybePromise } from '../runtime/maybe-promise.ts'
import { SerialQueue } from '../runtime/queues.ts'
import type { ReadBatch } from '../storage/record-batch.ts'

/** An event of a read session: a batch, or a heartbeat while it waits at the tail. */
export type ReadSessionEvent<Batch = ReadBatch<'string'>> =
  | { readonly kind: 'batch'; readonly batch: Batch }
  | {
      readonly kind: 'heartbeat'
      /** Milliseconds since the Unix epoch. */
      readonly timestamp: number
      readonly tail: StreamTail
    }

/** An event of a cursor, whose batches are in bytes. */
export type ReadEvent = ReadSessionEvent<ReadBatch>

/** An open read: what sessions are made of, in the engine as in the client. */
export interface RecordCursor {
  /** The identity of the stream that is read, if a server has sent one. */
  readonly streamId?: string | undefined
  /** The next event, without a promise if it is available; undefined at the end. One call at a time. */
  next(): MaybePromise<ReadEvent | undefined>
  /** Ends the read and frees what it holds. A pending `next` resolves to undefined. */
  close(): void
}

/** Options of a read as it reaches the engine or the client. */
export interface CursorOptions extends ReadPolicy {
  /**
   * Whether heartbeats are passed on: all, or the `first` at the tail. An engine then sets no timer for
   * others; a client passes on those of its server. False by default.
   */
  readonly heartbeats?: boolean | 'first' | undefined
  /** Creates the stream, whatever the configuration of its basin says. */
  readonly create?: boolean | undefined
  /**
   * Whether a client opens further connections when one is lost. True by default. If false, the failure is
   * reported at once. An engine ignores it.
   */
  readonly retry?: boolean | undefined
}

/** An async generator whose `return()` ends it, even while `next()` is pending. */
export abstract class ClosableIterator<Item> implements AsyncGenerator<Item, void, undefined> {
  abstract next(): Promise<IteratorResult<Item, void>>

  abstract return(): Promise<IteratorResult<Item, void>>

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
}

/**
 * Iterates over the events of a cursor that it opens at the first `next`. `return()` ends it even while
 * `next()` is pending, which an async generator function cannot.
 */
export class CursorIterator<Item> extends ClosableIterator<Item> {
  readonly #open: () => Promise<RecordCursor | undefined>
  readonly #signal: AbortSignal | undefined
  readonly #itemOf: (event: ReadEvent) => MaybePromise<Item>
  /** Concurrent calls of `next` take turns. */
  readonly #calls = new SerialQueue()
  #isOpened = false
  #isEnded = false
  /** The signal ended the iteration, and no call has reported it yet. */
  #isAborted = false
  #cursor: RecordCursor | undefined
  #ignoreSignal: (() => void) | undefined

  constructor(
    open: () => Promise<RecordCursor | undefined>,
    signal: AbortSignal | undefined,
    itemOf: (event: ReadEvent) => MaybePromise<Item>,
  ) {
    super()
    this.#open = open
    this.#signal = signal
    this.#itemOf = itemOf
  }

  next(): Promise<IteratorResult<Item, void>> {
    return this.#calls.runAtOnce(() => this.take())
  }

  /**
   * Does what `next` does, without a promise if an item is available: followers take many batches in one
   * turn. One call at a time, of this method or of `next`.
   */
  take(): MaybePromise<IteratorResult<Item, void>> {
    if (!this.#isOpened) return this.#openCursor().then(() => this.take(), this.#fail)
    const event = this.#isEnded ? undefined : this.#cursor?.next()
    return isPromise(event) ? event.then(this.#convert, this.#fail) : this.#convert(event)
  }

  async return(): Promise<IteratorResult<Item, void>> {
    this.#end()
    await this.#calls.run(async () => {})
    return { done: true, value: undefined }
  }

  readonly #convert = (event: ReadEvent | undefined): MaybePromise<IteratorResult<Item, void>> => {
    try {
      if (event === undefined) return this.#finish()
      const item = this.#itemOf(event)
      if (!isPromise(item)) return this.#result(item)
      return item.then((value) => this.#result(value)).catch(this.#fail)
    } catch (error) {
      return this.#fail(error)
    }
  }

  #result(value: Item): IteratorResult<Item, void> {
    return this.#isAborted ? this.#finish() : { done: false, value }
  }

  #finish(): IteratorResult<Item, void> {
    this.#end()
    if (this.#isAborted) throw this.#signal?.reason
    return { done: true, value: undefined }
  }

  readonly #fail = (error: unknown): Promise<never> => {
    this.#isAborted = false
    this.#end()
    return Promise.reject(error)
  }

  async #openCursor(): Promise<void> {
    this.#isOpened = true
    if (this.#isEnded) return
    this.#signal?.throwIfAborted()
    if (this.#signal) this.#ignoreSignal = onAbort(this.#signal, () => this.#abort())
    const opening = this.#open()
    opening
      .then((cursor) => {
        if (this.#isEnded) cursor?.close()
      })
      .catch(() => {})
    this.#cursor = await unlessAborted(this.#signal, opening)
  }

  #abort(): void {
    this.#isAborted = !this.#isEnded
    this.#end()
  }

  #end(): void {
    this.#isEnded = true
    this.#ignoreSignal?.()
    this.#cursor?.close()
  }
}

/** Iterates over the records of batches. Records of a batch that has arrived need no further waiting. */
export class RecordIterator<Item> extends ClosableIterator<Item> {
  readonly #batches: AsyncGenerator<{ readonly records: readonly Item[] }, void, undefined>
  readonly #signal: AbortSignal | undefined
  readonly #calls = new SerialQueue()
  #waiting = 0
  #records: readonly Item[] = []
  #index = 0
  #isEnded = false

  constructor(
    batches: AsyncGenerator<{ readonly records: readonly Item[] }, void, undefined>,
    signal: AbortSignal | undefined,
  ) {
    super()
    this.#batches = batches
    this.#signal = signal
  }

  next(): Promise<IteratorResult<Item, void>> {
    if (this.#waiting === 0 && this.#index < this.#records.length && !this.#signal?.aborted) {
      return Promise.resolve({ done: false, value: this.#records[this.#index++]! })
    }
    this.#waiting++
    return this.#calls.run(() => this.#advance()).finally(() => this.#waiting--)
  }

  async return(): Promise<IteratorResult<Item, void>> {
    this.#isEnded = true
    this.#drop()
    await this.#batches.return()
    return { done: true, value: undefined }
  }

  async #advance(): Promise<IteratorResult<Item, void>> {
    if (this.#signal?.aborted) this.#drop()
    while (this.#index >= this.#records.length) {
      const { done, value } = await this.#batches.next()
      if (done) return { done, value: undefined }
      if (this.#isEnded) return { done: true, value: undefined }
      this.#records = value.records
      this.#index = 0
    }
    return { done: false, value: this.#records[this.#index++]! }
  }

  #drop(): void {
    this.#records = []
    this.#index = 0
  }
}
