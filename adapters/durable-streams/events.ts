import type { EngineStream, ReadBatch, ReadCursor, ReadEvent, StreamTail } from '../../src/index.ts'
import { utf8 } from '../../src/model/bytes.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import type { MaybePromise } from '../../src/runtime/maybe-promise.ts'
import { type Reply, streamReply } from '../http/reply.ts'
import type { ApiRequest } from '../http/request.ts'
import { SessionBody, type SessionEncoding } from '../http/sessions.ts'
import type { Content } from './content.ts'
import { offsetOf } from './headers.ts'
import { completionOf, HeldBytes } from './large-messages.ts'
import { missingParts } from './messages.ts'
import { assertAvailable, goneError, type ReadPosition } from './state.ts'

interface EventOptions {
  /** Returns the cursor of the next event. */
  readonly cursors: () => string
  /** How long the response lasts before the client has to reconnect, in milliseconds. */
  readonly sseMs: number
}

/** Opens a stream of events. */
export async function eventStream(
  request: ApiRequest,
  position: ReadPosition,
  { cursors, sseMs }: EventOptions,
): Promise<Reply> {
  const { stream, state, seqNum } = position
  const { content } = state
  await assertAvailable(position)
  const cursor = await stream.openCursor({ seqNum }, { heartbeats: true })
  const cancelEnd = cursor && endAfter(cursor, sseMs)
  const encoding = new EventEncoding(position, cursors, new HeldBytes(request.settings), cancelEnd)
  const reply = streamReply(
    'text/event-stream',
    new SessionBody(cursor, encoding, request, 'durable-streams'),
  )
  return content.isBase64
    ? { ...reply, headers: { ...reply.headers, 'stream-sse-data-encoding': 'base64' } }
    : reply
}

/**
 * The share of `sseMs` by which responses end early at random, so that clients do not all reconnect at once.
 */
const DURATION_JITTER = 0.1

/** Closes the cursor after about `sseMs`. The returned function cancels. */
function endAfter(cursor: ReadCursor, sseMs: number): () => void {
  const delayMs = sseMs * (1 - DURATION_JITTER * Math.random())
  return systemClock.schedule(delayMs, () => cursor.close(), { background: true })
}

const COMMENT = utf8(':\n\n')

class EventEncoding implements SessionEncoding {
  /** The final event of a response that has sent no other event. */
  end: Uint8Array | undefined
  readonly #content: Content
  readonly #cursors: () => string
  readonly #stream: EngineStream
  /** The sequence number of the next record to send; undefined before the first event from the beginning. */
  #next: number | undefined
  /** The sequence number in the last control event. */
  #known = -1
  /** The memory of the last event. */
  readonly #held: HeldBytes
  /** Cancels the timer that ends the response. */
  readonly #cancelEnd: (() => void) | undefined
  #isClosed = false

  constructor(
    { state, stream, seqNum, isExact }: ReadPosition,
    cursors: () => string,
    held: HeldBytes,
    cancelEnd: (() => void) | undefined,
  ) {
    this.#held = held
    this.#cancelEnd = cancelEnd
    this.#content = state.content
    this.#stream = stream
    this.#cursors = cursors
    this.#next = isExact ? seqNum : undefined
    // A read at the end of a closed stream has no event.
    this.end = state.tail.closed ? utf8(closedEvent(seqNum)) : undefined
  }

  event(event: ReadEvent): MaybePromise<Uint8Array> {
    this.end = undefined
    // The event before it was sent.
    this.#held.release()
    if (event.kind === 'batch') return this.#batchEvents(event.batch)
    const { seqNum, closed } = event.tail
    this.#advance(seqNum, seqNum)
    if (closed) return utf8(closedEvent(seqNum))
    // Keeps the connection open.
    if (seqNum === this.#known) return COMMENT
    this.#known = seqNum
    return utf8(controlEvent(seqNum, this.#cursors(), true))
  }

  close(): void {
    this.#isClosed = true
    this.#cancelEnd?.()
    this.#held.release()
  }

  #batchEvents(batch: ReadBatch<'bytes'>): MaybePromise<Uint8Array> {
    const end = batch.lastSeqNum + 1
    const first = end - batch.count
    const sent = this.#next ?? first
    this.#advance(first, end)
    if (sent > first || missingParts(batch.records.at(-1)) > 0) return this.#completed(batch, sent)
    this.#known = end
    return sharedEvents(batch, this.#content, this.#cursors())
  }

  /** The events of a batch whose last message continues behind it, or whose first records were sent so. */
  async #completed(batch: ReadBatch<'bytes'>, sent: number): Promise<Uint8Array> {
    const end = batch.lastSeqNum + 1
    const { parts, tail = batch.tail } = await completionOf(batch, this.#stream, this.#held)
    if (this.#isClosed) this.#held.release()
    const records = [...batch.withoutCommands().records, ...parts].filter(({ seqNum }) => seqNum >= sent)
    const next = Math.max(sent, end + parts.length)
    this.#next = next
    this.#known = next
    const data = records.length === 0 ? '' : dataEvent(this.#content.eventDataOf(records))
    return utf8(data + controlAfter(next, tail, this.#cursors()))
  }

  /** Ends the response of a client that has fallen behind a trim, rather than leave out records silently. */
  #advance(first: number, next: number): void {
    if (this.#next !== undefined && first > this.#next) throw goneError(first)
    this.#next = Math.max(this.#next ?? 0, next)
  }

  /** Sends no event: the client reconnects, and the status of that response is the reason. */
  failure(): undefined {
    return undefined
  }
}

interface SharedEvents {
  readonly content: Content
  readonly cursor: string
  readonly chunk: Uint8Array
}

/** The last events made of each batch. */
const lastEvents = new WeakMap<ReadBatch, SharedEvents>()

/** The events of a batch, shared by the connections with the same cursor. */
function sharedEvents(batch: ReadBatch, content: Content, cursor: string): Uint8Array {
  const known = lastEvents.get(batch)
  if (known?.cursor === cursor && known.content === content) return known.chunk
  const visible = batch.withoutCommands()
  const data = visible.records.length === 0 ? '' : dataEvent(content.eventDataOf(visible.records))
  const chunk = utf8(data + controlAfter(batch.lastSeqNum + 1, batch.tail, cursor))
  lastEvents.set(batch, { content, cursor, chunk })
  return chunk
}

/**
 * Encodes the event. Parsers remove one space after the colon, so a line that begins with a space gets
 * another.
 */
function dataEvent(data: string): string {
  const lines = data
    .split(/\r\n|\n|\r/)
    .map((line) => (line.startsWith(' ') ? `data: ${line}` : `data:${line}`))
  return `event: data\n${lines.join('\n')}\n\n`
}

/** The control event after records, whose tail is known if they may have reached it. */
function controlAfter(next: number, tail: StreamTail | undefined, cursor: string): string {
  const isUpToDate = tail?.seqNum === next
  return isUpToDate && tail.closed ? closedEvent(next) : controlEvent(next, cursor, isUpToDate)
}

function controlEvent(seqNum: number, cursor: string, isUpToDate: boolean): string {
  const control = {
    streamNextOffset: offsetOf(seqNum),
    streamCursor: cursor,
    upToDate: isUpToDate || undefined,
  }
  return `event: control\ndata:${JSON.stringify(control)}\n\n`
}

/** The last event of a closed stream. It has no cursor, because the client does not reconnect. */
function closedEvent(seqNum: number): string {
  const control = { streamNextOffset: offsetOf(seqNum), upToDate: true, streamClosed: true }
  return `event: control\ndata:${JSON.stringify(control)}\n\n`
}
