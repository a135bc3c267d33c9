import { deletedUnderReadError } from '../../src/api/read-session.ts'
import type { CursorOptions, ReadEvent, RecordCursor } from '../../src/api/record-cursor.ts'
import { isStreamMissing } from '../../src/model/errors.ts'
import type { StreamTail } from '../../src/model/position.ts'
import { assertReadQuery, type ReadQuery } from '../../src/model/read-query.ts'
import { SharedSignal } from '../../src/runtime/abort.ts'
import { ReadBatch } from '../../src/storage/record-batch.ts'
import { STREAM_ID_HEADER, sessionContentType } from '../../src/wire/headers.ts'
import { objectOf } from '../../src/wire/json.ts'
import { positionOf } from '../../src/wire/json-records.ts'
import { decodeReadBatch } from '../../src/wire/protobuf.ts'
import { queryText, readQueryParts } from '../../src/wire/query.ts'
import { jsonCall, type OpenSession, type SessionCall } from './call.ts'
import { connectionFailure, decoded, emptyAt, Failure } from './errors.ts'
import { EVENT_STREAM, eventsOf, framesOf, type SessionEvent } from './read-events.ts'
import { ReceivedRange } from './received-range.ts'
import type { Sender } from './sender.ts'
import type { RemoteTarget } from './stream-target.ts'

/** Reads one batch. Where the server has nothing to read, it is empty. */
export async function readBatch(
  sender: Sender,
  { path, recordsAddress }: RemoteTarget,
  query: ReadQuery,
  signal: AbortSignal | undefined,
): Promise<ReadBatch> {
  assertReadQuery(query)
  const parts = readQueryParts(query, 'unary')
  try {
    const { body } = await sender.send({
      method: 'GET',
      path: `${path}/records${queryText(parts)}`,
      ...recordsAddress,
      accept: 'application/protobuf',
      isRepeatable: true,
      waitMs: Number(parts.wait ?? 0) * 1000,
      signal,
    })
    return decoded(false, () => {
      const received = decodeReadBatch(body)
      new ReceivedRange(query).take(received)
      return ReadBatch.received(received)
    })
  } catch (error) {
    const tail = emptyAt(query, error)
    if (tail === undefined) throw error
    return ReadBatch.received({ records: [], tail })
  }
}

/** Resolves to the tail of a stream. */
export function tailOf(
  sender: Sender,
  { path, address }: RemoteTarget,
  signal?: AbortSignal,
): Promise<StreamTail> {
  const call = jsonCall('GET', `${path}/records/tail`, { ...address, signal })
  return sender.json(call, (value) => positionOf(objectOf(value, 'body').tail))
}

/** Ends the requests of a cursor that is closed. */
const CLOSED = new Error('closed')

/** A connection of this age counts as a success without records too, in milliseconds. */
const LASTING_MS = 10_000

/** A connection of a read session. */
interface Link extends OpenSession {
  readonly events: AsyncGenerator<SessionEvent, void>
  readonly connectedAt: number
}

/**
 * A read session over as many connections as it takes. Each continues after the last record that was
 * received, in the same stream. It fails when the server says so, or after too many connections in succession
 * that bring nothing.
 */
export class RemoteCursor implements RecordCursor {
  readonly #sender: Sender
  readonly #target: RemoteTarget
  readonly #query: ReadQuery
  readonly #options: CursorOptions
  readonly #progress: ReceivedRange
  readonly #closing = new SharedSignal()
  readonly #events = this.#receive()
  /** Received while the session was opened. */
  #first: SessionEvent | undefined
  #wasOpened = false
  /** The identity of the stream that is read, if the server sends one. */
  #streamId: string | undefined
  /** Whether the server has said that nothing will follow: the stream is closed. */
  #isClosed = false
  /** Failures since records were received, or since a connection lasted. */
  #failures = 0
  #renewedToken = false

  private constructor(sender: Sender, target: RemoteTarget, query: ReadQuery, options: CursorOptions) {
    this.#sender = sender
    this.#target = target
    this.#query = query
    this.#options = options
    this.#progress = new ReceivedRange(query)
  }

  /** Opens a session. Resolves to undefined if it ends at once. */
  static async open(
    sender: Sender,
    target: RemoteTarget,
    query: ReadQuery,
    options: CursorOptions,
  ): Promise<RemoteCursor | undefined> {
    assertReadQuery(query)
    const cursor = new RemoteCursor(sender, target, query, options)
    // A session that is lost before its start is known could not be continued from there.
    const { done, value } = await cursor.#events.next()
    if (done) return undefined
    cursor.#first = value
    return cursor
  }

  get streamId(): string | undefined {
    return this.#streamId
  }

  async next(): Promise<ReadEvent | undefined> {
    const { heartbeats = false } = this.#options
    for (;;) {
      const event = await this.#nextEvent()
      if (event === undefined) return undefined
      const { received, sentAt } = event
      const { records, tail } = received
      if (records.length > 0) return { kind: 'batch', batch: ReadBatch.received(received) }
      if (heartbeats !== false && tail !== undefined) {
        return { kind: 'heartbeat', timestamp: sentAt ?? this.#now(), tail }
      }
    }
  }

  close(): void {
    this.#closing.abort(CLOSED)
    this.#events.return().catch(() => {})
  }

  #now(): number {
    return this.#sender.settings.clock.now()
  }

  /** Resolves to undefined at the end of the read, and once the cursor is closed. */
  async #nextEvent(): Promise<SessionEvent | undefined> {
    const first = this.#first
    this.#first = undefined
    try {
      const event = first ?? (await this.#events.next()).value
      return this.#closing.aborted ? undefined : (event ?? undefined)
    } catch (error) {
      if (this.#closing.aborted) return undefined
      throw error
    }
  }

  /** Yields the events of one connection after the other. */
  async *#receive(): AsyncGenerator<SessionEvent, void> {
    while (!this.#isOver) {
      let link: Link | undefined
      try {
        link = await this.#connect(this.#progress.rest())
        if (link === undefined) return
        for await (const event of link.events) {
          this.#take(event, link)
          yield event
          if (this.#isOver) return
        }
        if (this.#mayEnd()) return
        throw connectionFailure(new Error('the response ended'), true)
      } catch (error) {
        link?.exchange.end()
        await this.#recover(error, link !== undefined)
      } finally {
        link?.exchange.end()
      }
    }
  }

  /** Whether nothing follows. The server decides about a read of nothing: the stream may be missing. */
  get #isOver(): boolean {
    return this.#isClosed || (this.#progress.isComplete && this.#progress.hasBegun)
  }

  #take({ received }: SessionEvent, { connectedAt }: Link): void {
    this.#progress.take(received)
    const { records, tail } = received
    if (tail !== undefined) this.#progress.locate(tail)
    // Only events at the tail have one that is closed.
    this.#isClosed = tail?.closed === true
    // Otherwise, a connection that is lost right after its first heartbeat would count.
    const hasLasted = Math.abs(this.#now() - connectedAt) >= LASTING_MS
    if (records.length > 0 || hasLasted) {
      this.#failures = 0
      this.#renewedToken = false
    }
  }

  /** Whether a server may end the read now. */
  #mayEnd(): boolean {
    const { waitMs, bytes, until } = this.#query
    if (waitMs !== Number.POSITIVE_INFINITY || this.#progress.isComplete) return true
    return bytes !== undefined || until !== undefined
  }

  /** Resolves to undefined if there is nothing to read. */
  async #connect(query: ReadQuery): Promise<Link | undefined> {
    const { headerPrefix, readsEvents } = this.#sender.settings
    const { path, recordsAddress } = this.#target
    const mediaType = readsEvents ? EVENT_STREAM : sessionContentType(headerPrefix)
    const call: SessionCall = {
      method: 'GET',
      path: `${path}/records${queryText(readQueryParts(query, 'session'))}`,
      basin: recordsAddress.basin,
      vendor: { ...recordsAddress.vendor, format: readsEvents ? 'base64' : undefined },
      headers: this.#streamId === undefined ? undefined : { [STREAM_ID_HEADER]: this.#streamId },
      accept: readsEvents ? mediaType : 'application/protobuf',
      contentType: readsEvents ? undefined : mediaType,
      mediaType,
      isRepeatable: true,
    }
    try {
      const opened = await this.#sender.open(call, this.#closing)
      this.#streamId ??= opened.response.header(STREAM_ID_HEADER)
      this.#wasOpened = true
      const events = readsEvents ? eventsOf(opened) : framesOf(opened)
      return { ...opened, events, connectedAt: this.#now() }
    } catch (failure) {
      if (!(failure instanceof Failure)) throw failure
      const { error } = failure
      if (emptyAt(query, error) !== undefined) return undefined
      // The stream was deleted, and there may be another one.
      const isGone = error.code === 'range_not_satisfiable' || isStreamMissing(error)
      throw this.#wasOpened && isGone ? deletedUnderReadError() : failure
    }
  }

  /** Waits before the next connection. Throws if there must not be one. */
  async #recover(error: unknown, wasConnected: boolean): Promise<void> {
    this.#closing.throwIfAborted()
    this.#sender.closing.throwIfAborted()
    const failure = connectionFailure(error, true)
    const { retry = true } = this.#options
    const { settings, token } = this.#sender
    if (failure.error.code === 'authn' && !this.#renewedToken && token.renew()) {
      this.#renewedToken = true
      if (retry || !this.#wasOpened) return
    }
    const most = this.#wasOpened ? settings.resumes : settings.retries
    if (!retry || !failure.isTransient || this.#failures >= most) throw failure.error
    this.#failures++
    // Another server may take the session over at once.
    if (wasConnected && this.#failures === 1 && failure.error.code === 'server_draining') return
    await this.#sender.pause(this.#failures, failure, this.#closing)
  }
}
