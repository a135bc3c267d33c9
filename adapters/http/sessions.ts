import type { Engine, ReadCursor, ReadEvent } from '../../src/index.ts'
import type { HeadwaterError } from '../../src/model/errors.ts'
import { isPromise, type MaybePromise } from '../../src/runtime/maybe-promise.ts'
import { type ErrorBody, errorBody } from '../../src/wire/errors.ts'
import type { RequestExchange } from './exchange.ts'
import type { ReplyChunk, ReplyStream } from './reply.ts'
import type { ApiRequest } from './request.ts'
import type { DrainableSession } from './session-drain.ts'

/** A read session that is open. */
export interface OpenSession {
  /** @internal */
  readonly cursor: ReadCursor
  readonly exchange: RequestExchange
  readonly protocol: 'events' | 'frames' | 'durable-streams'
  /** The time at which it was opened, in milliseconds since the Unix epoch. */
  readonly openedAt: number
}

const sessionsOf = new WeakMap<Engine, Set<OpenSession>>()

/** The open sessions of all handlers of an engine, whatever their protocol, the oldest first. */
export function openSessions(owner: Engine): Set<OpenSession> {
  const known = sessionsOf.get(owner)
  if (known !== undefined) return known
  const sessions = new Set<OpenSession>()
  sessionsOf.set(owner, sessions)
  return sessions
}

/** How the events of a read session are written. */
export interface SessionEncoding {
  /** Whether an event is not used any more once its chunk is sent. False by default. */
  readonly reusesMemory?: boolean
  event(event: ReadEvent): MaybePromise<ReplyChunk>
  /** Undefined ends the body without a word. */
  failure(error: ErrorBody): Uint8Array | undefined
  /** Makes all further events advise the client to reconnect. Undefined if events cannot. */
  advise?(): void
  /** Marks a clean end. */
  readonly end?: Uint8Array | undefined
  /** Called when the body ends, for whatever reason. */
  close?(): void
}

type Chunk = IteratorResult<ReplyChunk, undefined>

const DONE = { done: true, value: undefined } as const

/**
 * The body of a read session. Each `next` writes one event and nothing is read ahead, so the client sets the
 * pace.
 */
export class SessionBody
  implements ReplyStream, AsyncIterableIterator<ReplyChunk, undefined>, DrainableSession
{
  /** Undefined if there is nothing to deliver. */
  readonly #cursor: ReadCursor | undefined
  readonly #encoding: SessionEncoding
  readonly #request: ApiRequest
  /** Its entry among the sessions that are listed. */
  readonly #listed: OpenSession | undefined
  #isOver = false

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
    openSessions(request.owner).add(this.#listed)
  }

  set onEvicted(callback: () => void) {
    if (this.#cursor !== undefined) this.#cursor.onEvicted = callback
  }

  reuseMemory(): void {
    if (this.#encoding.reusesMemory) this.#cursor?.reuseMemory()
  }

  async next(): Promise<Chunk> {
    if (this.#isOver) return DONE
    try {
      const event = await this.#cursor?.next()
      if (event === undefined) return this.#last(this.#encoding.end)
      const chunk = this.#encoding.event(event)
      // Most are ready, and a turn for each of a thousand followers takes longer than the rest.
      return { done: false, value: isPromise(chunk) ? await chunk : chunk }
    } catch (error) {
      if (!this.#isOver) this.#request.report(error)
      return this.#last(this.#encoding.failure(errorBody(error)))
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

  #last(value: Uint8Array | undefined): Chunk {
    const isOver = this.#isOver
    this.#close()
    return isOver || value === undefined ? DONE : { done: false, value }
  }

  #close(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#request.settings.drain.delete(this)
    this.#encoding.close?.()
    if (this.#listed !== undefined) openSessions(this.#request.owner).delete(this.#listed)
    this.#cursor?.close()
  }
}
