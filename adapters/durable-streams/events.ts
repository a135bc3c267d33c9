import type { ReadBatch, ReadCursor, ReadEvent, SequencedRecord } from '../../src/index.ts'
import { utf8 } from '../../src/model/bytes.ts'
import { type Reply, streamReply } from '../http/reply.ts'
import type { ApiRequest } from '../http/request.ts'
import { SessionBody, type SessionEncoding } from '../http/sessions.ts'
import type { Content } from './content.ts'
import { offsetOf } from './headers.ts'
import { HeldBytes } from './held-bytes.ts'
import { openParts } from './messages.ts'
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
  if (cursor !== undefined) endAfter(cursor, sseMs)
  const encoding = new EventEncoding(position, cursors, new HeldBytes(request.settings))
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

function endAfter(cursor: ReadCursor, sseMs: number): void {
  const timer = setTimeout(() => cursor.close(), sseMs * (1 - DURATION_JITTER * Math.random()))
  // In Node, the timer of a response that has ended must not keep the process alive.
  Object(timer).unref?.()
}

const COMMENT = utf8(':\n\n')

class EventEncoding implements SessionEncoding {
  /** The final event of a response that has sent no other event. */
  end: Uint8Array | undefined
  readonly #content: Content
  readonly #cursors: () => string
  /** The sequence number of the next record; undefined before the first event from the beginning. */
  #next: number | undefined
  /** The sequence number in the last control event. */
  #known = -1
  /** The first parts of a message that is not complete: fewer than the parts of the largest message. */
  #parts: readonly SequencedRecord[] = []
  readonly #held: HeldBytes

  constructor({ state, seqNum, isExact }: ReadPosition, cursors: () => string, held: HeldBytes) {
    this.#held = held
    this.#content = state.content
    this.#cursors = cursors
    this.#next = isExact ? seqNum : undefined
    // A read at the end of a closed stream has no event.
    this.end = state.tail.closed ? utf8(closedEvent(seqNum)) : undefined
  }

  event(event: ReadEvent): Uint8Array {
    this.end = undefined
    // The event before it was sent.
    this.#held.release()
    if (event.kind === 'heartbeat') {
      const { seqNum, closed } = event.tail
      this.#advance(seqNum, seqNum)
      // At the tail, what is left of a message in parts will not come.
      const data = this.#dataOf(this.#parts)
      this.#parts = []
      if (closed) return utf8(data + closedEvent(seqNum))
      // Keeps the connection open.
      if (seqNum === this.#known && data === '') return COMMENT
      this.#known = seqNum
      return utf8(data + controlEvent(seqNum, this.#cursors(), true))
    }
    const { batch } = event
    const next = batch.lastSeqNum + 1
    this.#advance(next - batch.count, next)
    const isFirst = this.#parts.length === 0
    const open = openParts(isFirst ? batch.records : [...this.#parts, ...batch.records])
    if (isFirst && open === 0) {
      this.#known = next
      return sharedEvents(batch, this.#content, this.#cursors())
    }
    const records = [...this.#parts, ...batch.withoutCommands().records]
    this.#held.acquire(records.reduce((bytes, { body }) => bytes + body.length, 0))
    const complete = records.slice(0, records.length - open)
    this.#parts = records.slice(complete.length)
    const [first] = this.#parts
    if (first !== undefined && complete.length === 0) return COMMENT
    // A client that reconnects needs the message that is not complete from its beginning.
    this.#known = first?.seqNum ?? next
    const control =
      first === undefined
        ? controlAfter(batch, this.#cursors())
        : controlEvent(first.seqNum, this.#cursors(), false)
    return utf8(this.#dataOf(complete) + control)
  }

  close(): void {
    this.#held.release()
  }

  #dataOf(records: readonly SequencedRecord[]): string {
    return records.length === 0 ? '' : dataEvent(this.#content.eventDataOf(records))
  }

  /** Ends the response of a client that has fallen behind a trim, rather than leave out records silently. */
  #advance(first: number, next: number): void {
    if (this.#next !== undefined && first > this.#next) throw goneError(first)
    this.#next = next
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
  const chunk = utf8(data + controlAfter(batch, cursor))
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

/** The control event after the records of a batch. */
function controlAfter(batch: ReadBatch, cursor: string): string {
  const next = batch.lastSeqNum + 1
  const isUpToDate = batch.tail?.seqNum === next
  const isLast = isUpToDate && batch.tail?.closed === true
  return isLast ? closedEvent(next) : controlEvent(next, cursor, isUpToDate)
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
