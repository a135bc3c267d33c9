import type { EngineStream, ReadBatch, ReadEvent, ReadQuery } from '../../../src/index.ts'
import { utf8 } from '../../../src/model/bytes.ts'
import {
  andThen,
  isPromise,
  LATER,
  type MaybePromise,
  type Receiver,
} from '../../../src/runtime/maybe-promise.ts'
import type { Compression } from '../../../src/wire/codec.ts'
import { type ErrorBody, errorBody } from '../../../src/wire/error-body.ts'
import { encodeTerminalFrame } from '../../../src/wire/frame.ts'
import { sessionCompressionOf } from '../../../src/wire/frame-compression.ts'
import { pingJson, sharedBatchJson } from '../../../src/wire/json-records.ts'
import { sessionContentType } from '../../../src/wire/media-type.ts'
import { heartbeatFrame, largeBatchFrame, readBatchFrame } from '../../../src/wire/proto-records.ts'
import { batchEvent, DONE_EVENT, errorEvent, pingEvent } from '../../../src/wire/sse.ts'
import type { DataFormat } from '../../../src/wire/vendor-headers.ts'
import type { HandlerSettings } from '../options.ts'
import { type Reply, type ReplyChunks, type ReplyStream, streamReply } from '../reply.ts'
import type { ApiRequest } from '../request.ts'

/** Opens a binary read session. It ends with the body; a terminal frame reports a failure. */
export function frameStream(request: ApiRequest, stream: EngineStream, query: ReadQuery): Promise<Reply> {
  const encoding = frameEncoding(sessionCompressionOf(request.exchange.header('accept-encoding') ?? null))
  return openSession(request, stream, query, sessionContentType(request.headerPrefix), encoding)
}

/** Opens a read session by Server-Sent Events. */
export function eventStream(
  request: ApiRequest,
  stream: EngineStream,
  query: ReadQuery,
  format: DataFormat,
): Promise<Reply> {
  return openSession(request, stream, query, EVENT_STREAM, eventEncoding(format))
}

async function openSession(
  request: ApiRequest,
  stream: EngineStream,
  query: ReadQuery,
  contentType: string,
  encoding: SessionEncoding,
): Promise<Reply> {
  const cursor = await stream.openCursor(query, { heartbeats: true, ...request.readPolicy })
  const protocol = contentType === EVENT_STREAM ? 'events' : 'frames'
  return streamReply(contentType, new SessionBody(cursor, encoding, request, protocol))
}

const EVENT_STREAM = 'text/event-stream'

/** A read session that is open. */
export interface OpenSession {
  /** Undefined if there is nothing to deliver. */
  readonly cursor: EngineCursor | undefined
  readonly request: ApiRequest
  readonly protocol: 'events' | 'frames'
  /** When it was opened, in milliseconds since the Unix epoch. */
  readonly openedAt: number
}

type EngineCursor = NonNullable<Awaited<ReturnType<EngineStream['openCursor']>>>

const sessionsOf = new WeakMap<HandlerSettings, Set<OpenSession>>()

/** The open sessions of a handler, the oldest first. */
export function openSessions(settings: HandlerSettings): Set<OpenSession> {
  const known = sessionsOf.get(settings)
  if (known !== undefined) return known
  const sessions = new Set<OpenSession>()
  sessionsOf.set(settings, sessions)
  return sessions
}

/** How the events of a read session are written. */
interface SessionEncoding {
  /** May return the event in parts. */
  event(event: ReadEvent): MaybePromise<Uint8Array | readonly Uint8Array[]>
  failure(error: ErrorBody): Uint8Array
  /** Marks a clean end. */
  readonly end?: Uint8Array | undefined
}

function frameEncoding(compression: Compression | undefined): SessionEncoding {
  return {
    event(event) {
      if (event.kind === 'heartbeat') return heartbeatFrame(event.tail)
      const parts = compression === undefined ? largeBatchFrame(event.batch) : undefined
      return parts ?? readBatchFrame(event.batch, compression)
    },
    failure: ({ status, text }) => encodeTerminalFrame(status, text),
  }
}

const DONE_CHUNK = utf8(DONE_EVENT)

function eventEncoding(format: DataFormat): SessionEncoding {
  let count = 0
  let bytes = 0
  return {
    event(event) {
      if (event.kind === 'heartbeat') return utf8(pingEvent(pingJson(event.timestamp, event.tail)))
      const { batch } = event
      count += batch.count
      bytes += batch.meteredBytes
      return sharedBatchEvent(batch, format, count, bytes)
    },
    failure: ({ text }) => utf8(errorEvent(text)),
    end: DONE_CHUNK,
  }
}

interface SharedEvent {
  readonly format: DataFormat
  readonly count: number
  readonly bytes: number
  readonly chunk: Uint8Array
}

/** The last event made of each batch. */
const lastEvents = new WeakMap<ReadBatch, SharedEvent>()

/** The event of a batch, shared by connections that have delivered the same amount in the same format. */
function sharedBatchEvent(
  batch: ReadBatch<'bytes'>,
  format: DataFormat,
  count: number,
  bytes: number,
): Uint8Array {
  const known = lastEvents.get(batch)
  if (known?.count === count && known.bytes === bytes && known.format === format) return known.chunk
  const delivered = { lastSeqNum: batch.lastSeqNum, count, bytes }
  const chunk = utf8(batchEvent(delivered, sharedBatchJson(batch, format)))
  lastEvents.set(batch, { format, count, bytes, chunk })
  return chunk
}

type Chunk = IteratorResult<Uint8Array, undefined>

const DONE = { done: true, value: undefined } as const

/**
 * The body of a read session. Each `next` writes one event and nothing is read ahead, so the client sets the
 * pace.
 */
class SessionBody implements ReplyStream, ReplyChunks, OpenSession {
  readonly cursor: EngineCursor | undefined
  readonly request: ApiRequest
  readonly protocol: OpenSession['protocol']
  readonly openedAt = Date.now()
  readonly #encoding: SessionEncoding
  /** The parts of the last event that are not written yet. */
  #parts: readonly Uint8Array[] = []
  #isOver = false
  #receive: Receiver<Chunk> | undefined

  constructor(
    cursor: EngineCursor | undefined,
    encoding: SessionEncoding,
    request: ApiRequest,
    protocol: OpenSession['protocol'],
  ) {
    this.cursor = cursor
    this.#encoding = encoding
    this.request = request
    this.protocol = protocol
    openSessions(request.settings).add(this)
  }

  set onEvicted(callback: () => void) {
    if (this.cursor !== undefined) this.cursor.onEvicted = callback
  }

  next(): MaybePromise<Chunk>
  next(receive: Receiver<Chunk>): MaybePromise<Chunk> | typeof LATER
  next(receive?: Receiver<Chunk>): MaybePromise<Chunk> | typeof LATER {
    if (this.#isOver) return DONE
    if (this.#parts.length > 0) return this.#nextPart()
    if (receive === undefined) return this.#afterEvent(this.cursor?.next())
    this.#receive = receive
    const event = this.cursor?.next(this.#onEvent)
    return event === LATER ? LATER : this.#afterEvent(event)
  }

  readonly #onEvent = (event: MaybePromise<ReadEvent | undefined>): void =>
    this.#receive!(this.#afterEvent(event))

  #afterEvent(event: MaybePromise<ReadEvent | undefined>): MaybePromise<Chunk> {
    try {
      const chunk = andThen(event, (event) => this.#chunkOf(event))
      return isPromise(chunk) ? chunk.catch((error: unknown) => this.#failure(error)) : chunk
    } catch (error) {
      return this.#failure(error)
    }
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
    return andThen(this.#encoding.event(event), (encoded) => this.#begin(encoded))
  }

  #begin(encoded: Uint8Array | readonly Uint8Array[]): Chunk {
    if (encoded instanceof Uint8Array) return { done: false, value: encoded }
    this.#parts = encoded
    return this.#nextPart()
  }

  #nextPart(): Chunk {
    const [value, ...parts] = this.#parts
    this.#parts = parts
    return { done: false, value: value! }
  }

  #failure(error: unknown): Chunk {
    if (!this.#isOver) this.request.report(error)
    return this.#last(this.#encoding.failure(errorBody(error)))
  }

  #last(value: Uint8Array | undefined): Chunk {
    const isOver = this.#isOver
    this.#close()
    return isOver || value === undefined ? DONE : { done: false, value }
  }

  #close(): void {
    this.#isOver = true
    openSessions(this.request.settings).delete(this)
    this.cursor?.close()
  }
}
