import type { ReadCursor, ReadEvent } from '../../src/index.ts'
import type { HeadwaterError } from '../../src/model/errors.ts'
import { andThen, LATER, type MaybePromise, type Receiver } from '../../src/runtime/maybe-promise.ts'
import { type ErrorBody, errorBody } from '../../src/wire/errors.ts'
import type { OpenSession } from './open-sessions.ts'
import type { NextChunk, ReplyChunks, ReplyStream } from './reply.ts'
import type { ApiRequest } from './request.ts'
import type { DrainableSession } from './session-drain.ts'

/** How the events of a read session are written. */
export interface SessionEncoding {
  /** May return the event in parts. */
  event(event: ReadEvent): MaybePromise<Uint8Array | readonly Uint8Array[]>
  /** Undefined ends the body without a word. */
  failure(error: ErrorBody): Uint8Array | undefined
  /** Makes all further events advise the client to reconnect. Undefined if events cannot. */
  advise?(): void
  /** Marks a clean end. */
  readonly end?: Uint8Array | undefined
}

type Chunk = NextChunk

const DONE = { done: true, value: undefined } as const

/**
 * The body of a read session. Each `next` writes one event and nothing is read ahead, so the client sets the
 * pace.
 */
export class SessionBody implements ReplyStream, ReplyChunks, DrainableSession {
  /** Undefined if there is nothing to deliver. */
  readonly #cursor: ReadCursor | undefined
  readonly #encoding: SessionEncoding
  readonly #request: ApiRequest
  /** Its entry among the sessions that are listed. */
  readonly #listed: OpenSession | undefined
  /** The parts of the last event that are not written yet. */
  #parts: readonly Uint8Array[] = []
  #onSent: (() => void) | undefined
  #isOver = false
  #receive: Receiver<Chunk> | undefined

  constructor(
    cursor: ReadCursor | undefined,
    encoding: SessionEncoding,
    request: ApiRequest,
    protocol: OpenSession['protocol'],
  ) {
    this.#cursor = cursor
    this.#encoding = encoding
    this.#request = request
    if (cursor === undefined) return
    request.settings.drain.add(this)
    this.#listed = { cursor, exchange: request.exchange, protocol, openedAt: Date.now() }
    request.sessions.add(this.#listed)
  }

  set onEvicted(callback: () => void) {
    if (this.#cursor !== undefined) this.#cursor.onEvicted = callback
  }

  next(): MaybePromise<Chunk>
  next(receive: Receiver<Chunk>): MaybePromise<Chunk> | typeof LATER
  next(receive?: Receiver<Chunk>): MaybePromise<Chunk> | typeof LATER {
    if (this.#isOver) return DONE
    if (this.#parts.length > 0) return this.#nextPart()
    if (receive === undefined) return this.#afterEvent(this.#cursor?.next())
    this.#receive = receive
    const event = this.#cursor?.next(this.#onEvent)
    return event === LATER ? LATER : this.#afterEvent(event)
  }

  readonly #onEvent = (event: MaybePromise<ReadEvent | undefined>): void =>
    this.#receive!(this.#afterEvent(event))

  #afterEvent(event: MaybePromise<ReadEvent | undefined>): MaybePromise<Chunk> {
    try {
      const isReady = event === undefined || 'kind' in event
      const chunk = isReady ? this.#chunkOf(event) : event.then((event) => this.#chunkOf(event))
      return 'then' in chunk ? chunk.catch((error: unknown) => this.#failure(error)) : chunk
    } catch (error) {
      return this.#failure(error)
    }
  }

  advise(): void {
    if (this.#encoding.advise === undefined) return
    this.#encoding.advise()
    this.#cursor?.beat()
  }

  end(error: HeadwaterError): void {
    this.#cursor?.fail(error)
  }

  async return(): Promise<Chunk> {
    this.#close()
    return DONE
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  #chunkOf(event: ReadEvent | undefined): MaybePromise<Chunk> {
    if (event === undefined) return this.#last(this.#encoding.end)
    const encoded = this.#encoding.event(event)
    if (encoded instanceof Uint8Array) return { done: false, value: encoded }
    return andThen(encoded, (encoded) => this.#begin(encoded, event))
  }

  #begin(encoded: Uint8Array | readonly Uint8Array[], event: ReadEvent): Chunk {
    if (encoded instanceof Uint8Array) return { done: false, value: encoded }
    this.#parts = encoded
    // No other session has the batches of a stored block.
    this.#onSent = event.kind === 'batch' ? event.batch.release : undefined
    return this.#nextPart()
  }

  #nextPart(): Chunk {
    const [value, ...parts] = this.#parts
    this.#parts = parts
    return { done: false, value: value!, onSent: parts.length === 0 ? this.#onSent : undefined }
  }

  #failure(error: unknown): Chunk {
    if (!this.#isOver) this.#request.report(error)
    return this.#last(this.#encoding.failure(errorBody(error)))
  }

  #last(value: Uint8Array | undefined): Chunk {
    const isOver = this.#isOver
    this.#close()
    return isOver || value === undefined ? DONE : { done: false, value }
  }

  #close(): void {
    this.#isOver = true
    this.#request.settings.drain.delete(this)
    if (this.#listed !== undefined) this.#request.sessions.delete(this.#listed)
    this.#cursor?.close()
  }
}
