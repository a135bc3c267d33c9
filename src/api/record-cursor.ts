import type { ReadPolicy } from '../core/read-plan.ts'
import type { StreamTail } from '../model/position.ts'
import { onAbort, unlessAborted } from '../runtime/abort.ts'
import { isPromise, LATER, type MaybePromise, type Receiver } from '../runtime/maybe-promise.ts'
import { SerialQueue } from '../runtime/serial-queue.ts'
import type { ReadBatch } from '../storage/record-batch.ts'

/**
 * Shows that a waiting read is alive (docs/protocol.md "Heartbeats"): the time in milliseconds, and the tail.
 */
export interface Heartbeat {
  readonly kind: 'heartbeat'
  readonly timestamp: number
  readonly tail: StreamTail
}

/** A batch of records in bytes, or a heartbeat while the cursor waits at the tail. */
export type ReadEvent = { readonly kind: 'batch'; readonly batch: ReadBatch } | Heartbeat

/** An open read: what sessions are made of, in the engine as in the client. */
export interface RecordCursor {
  /** Resolves to the next event, or to undefined at the end of the read. One call at a time. */
  next(): MaybePromise<ReadEvent | undefined>
  /** Does the same as `next()`, but may also return `LATER` and call `receive` with the event. */
  next(receive: Receiver<ReadEvent | undefined>): MaybePromise<ReadEvent | undefined> | typeof LATER
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
  #receive: Receiver<IteratorResult<Item, void>> | undefined

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
  take(): MaybePromise<IteratorResult<Item, void>>
  /** Does the same as `take()`, but may also return `LATER` and call `receive` with the result. */
  take(receive: Receiver<IteratorResult<Item, void>>): MaybePromise<IteratorResult<Item, void>> | typeof LATER
  take(
    receive?: Receiver<IteratorResult<Item, void>>,
  ): MaybePromise<IteratorResult<Item, void>> | typeof LATER {
    if (!this.#isOpened) return this.#openCursor().then(() => this.take(), this.#fail)
    const cursor = this.#isEnded ? undefined : this.#cursor
    if (cursor === undefined || receive === undefined) return this.#resultOf(cursor?.next())
    this.#receive = receive
    const event = cursor.next(this.#onEvent)
    return event === LATER ? LATER : this.#resultOf(event)
  }

  async return(): Promise<IteratorResult<Item, void>> {
    this.#end()
    await this.#calls.run(async () => {})
    return { done: true, value: undefined }
  }

  readonly #onEvent = (event: MaybePromise<ReadEvent | undefined>): void =>
    this.#receive!(this.#resultOf(event))

  #resultOf(event: MaybePromise<ReadEvent | undefined>): MaybePromise<IteratorResult<Item, void>> {
    try {
      const result = isPromise(event) ? event.then(this.#convert) : this.#convert(event)
      return isPromise(result) ? result.then(undefined, this.#fail) : result
    } catch (error) {
      return this.#fail(error)
    }
  }

  readonly #convert = (event: ReadEvent | undefined): MaybePromise<IteratorResult<Item, void>> => {
    if (event === undefined) return this.#finish()
    const item = this.#itemOf(event)
    return isPromise(item) ? item.then((value) => this.#result(value)) : this.#result(item)
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
