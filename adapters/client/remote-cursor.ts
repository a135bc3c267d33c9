import { deletedUnderReadError } from '../../src/api/errors.ts'
import type { CursorOptions, ReadEvent, RecordCursor } from '../../src/api/record-cursor.ts'
import { isStreamMissing } from '../../src/model/errors.ts'
import { assertReadQuery, type ReadQuery } from '../../src/model/read-query.ts'
import { SharedSignal } from '../../src/runtime/abort.ts'
import { ReadBatch } from '../../src/storage/record-batch.ts'
import type { ClientCore } from './core.ts'
import { connectionFailure, decoded, emptyAt } from './errors.ts'
import { type LinkEvent, LinkFailure } from './link-event.ts'
import { openLink, type ReadLink } from './read-link.ts'
import { ReceivedRange } from './received-range.ts'
import { pause, pauseMs } from './retry.ts'
import type { RemoteTarget } from './stream-target.ts'

/** Ends the requests of a cursor that is closed. */
const CLOSED = new Error('closed')

/** A connection of this age counts as a success without records too, in milliseconds. */
const LASTING_MS = 10_000

/**
 * A read session over as many connections as it takes. Each continues after the last record that was
 * received, in the same stream. It fails when the server says so, or after too many connections in succession
 * that bring nothing.
 */
export class RemoteCursor implements RecordCursor {
  readonly #core: ClientCore
  readonly #target: RemoteTarget
  readonly #query: ReadQuery
  readonly #heartbeats: boolean
  readonly #retry: boolean
  readonly #progress: ReceivedRange
  readonly #closing = new SharedSignal()
  #link: ReadLink | undefined
  /** Received while the session was opened. */
  #first: LinkEvent | undefined
  #wasOpened = false
  /** The identity of the stream that is read, if the server sends one. */
  #streamId: string | undefined
  #connectedAt = 0
  /** Whether the server has said that nothing will follow: the stream is closed. */
  #isClosed = false
  /** Failures since records were received, or since a connection lasted. */
  #failures = 0
  #renewedToken = false
  /**
   * Whether the connection replaces one that the server advised to leave. It is not left before it has
   * lasted.
   */
  #followsAdvice = false

  private constructor(
    core: ClientCore,
    target: RemoteTarget,
    query: ReadQuery,
    { heartbeats = false, retry = true }: CursorOptions,
  ) {
    this.#core = core
    this.#target = target
    this.#query = query
    this.#heartbeats = heartbeats !== false
    this.#retry = retry
    this.#progress = new ReceivedRange(query)
  }

  /** Opens a session. Resolves to undefined if it ends at once. */
  static async open(
    core: ClientCore,
    target: RemoteTarget,
    query: ReadQuery,
    options: CursorOptions,
  ): Promise<RemoteCursor | undefined> {
    assertReadQuery(query)
    const cursor = new RemoteCursor(core, target, query, options)
    try {
      if (await cursor.#begin()) return cursor
    } catch (error) {
      cursor.close()
      throw error
    }
    cursor.close()
    return undefined
  }

  async next(): Promise<ReadEvent | undefined> {
    try {
      for (;;) {
        const event = this.#first ?? (await this.#receive())
        this.#first = undefined
        if (event === undefined || this.#closing.aborted) break
        const { received, sentAt } = event
        if (received.records.length > 0) return { kind: 'batch', batch: ReadBatch.received(received) }
        const { tail } = received
        if (this.#heartbeats && tail !== undefined) {
          return { kind: 'heartbeat', timestamp: sentAt ?? this.#core.settings.clock.now(), tail }
        }
      }
    } catch (error) {
      if (!this.#closing.aborted) {
        this.close()
        throw error
      }
    }
    this.close()
    return undefined
  }

  close(): void {
    this.#closing.abort(CLOSED)
    this.#drop()
  }

  /** Resolves to whether there is something to read. */
  async #begin(): Promise<boolean> {
    // A session that is lost before its start is known could not be continued from there.
    if (!this.#progress.isLocated) {
      this.#first = await this.#receive()
      return this.#first !== undefined
    }
    for (;;) {
      try {
        return await this.#connect()
      } catch (error) {
        await this.#recover(error)
      }
    }
  }

  /** Resolves to the next event, over a new connection if need be; to undefined at the end of the read. */
  async #receive(): Promise<LinkEvent | undefined> {
    for (;;) {
      try {
        // The server decides about a read of nothing: the stream may be missing.
        if (this.#isClosed || (this.#progress.isComplete && this.#progress.hasBegun)) return undefined
        if (this.#link === undefined && !(await this.#connect())) return undefined
        const event = await this.#link!.next()
        if (event === undefined) {
          this.#drop()
          if (this.#mayEnd()) return undefined
          throw new LinkFailure(connectionFailure(new Error('the response ended'), false))
        }
        decoded(false, () => this.#progress.take(event.received))
        const { tail } = event.received
        if (tail !== undefined) this.#progress.locate(tail)
        // Only events at the tail have one that is closed.
        this.#isClosed = tail?.closed === true
        const hasLasted = this.#hasLasted()
        if (event.received.records.length > 0 || hasLasted) {
          this.#failures = 0
          this.#renewedToken = false
        }
        if (hasLasted) this.#followsAdvice = false
        // The end of what is stored needs no other connection.
        const isAtEnd = tail !== undefined && this.#query.waitMs === 0
        if (event.advisesReconnect && !this.#followsAdvice && !isAtEnd) {
          this.#drop()
          this.#followsAdvice = true
        }
        return event
      } catch (error) {
        await this.#recover(error)
      }
    }
  }

  /** Whether the connection is worth more than one that is lost right after its first heartbeat. */
  #hasLasted(): boolean {
    return Math.abs(this.#core.settings.clock.now() - this.#connectedAt) >= LASTING_MS
  }

  /** Whether a server may end the read now. */
  #mayEnd(): boolean {
    const { waitMs, bytes, until } = this.#query
    if (waitMs !== Number.POSITIVE_INFINITY || this.#progress.isComplete) return true
    return bytes !== undefined || until !== undefined
  }

  /** Opens a connection. Resolves to false if there is nothing to read. */
  async #connect(): Promise<boolean> {
    const query = this.#progress.rest()
    const opened = await openLink(this.#core, this.#target, query, this.#closing, this.#streamId)
    if (!('error' in opened)) {
      this.#link = opened
      this.#streamId ??= opened.streamId
      this.#wasOpened = true
      this.#connectedAt = this.#core.settings.clock.now()
      return true
    }
    const { error } = opened
    if (emptyAt(query, error) !== undefined) return false
    // The stream was deleted, and there may be another one.
    const isGone = error.code === 'range_not_satisfiable' || isStreamMissing(error)
    if (this.#wasOpened && isGone) throw deletedUnderReadError()
    throw new LinkFailure(opened)
  }

  /** Waits before the next connection. Throws if there must not be one. */
  async #recover(error: unknown): Promise<void> {
    this.#drop()
    this.#closing.throwIfAborted()
    if (!(error instanceof LinkFailure)) throw error
    const { failure } = error
    const { closing, sender, settings } = this.#core
    if (failure.error.code === 'authn' && !this.#renewedToken && sender.renewToken()) {
      this.#renewedToken = true
      if (this.#retry || !this.#wasOpened) return
    }
    const most = this.#wasOpened ? settings.resumes : settings.retries
    if (!this.#retry || !failure.isTransient || this.#failures >= most) throw failure.error
    this.#failures++
    const ms = pauseMs(this.#failures, failure.retryAfterMs, settings.random())
    settings.onRetry(failure.error, ms)
    await pause(settings.clock, ms, [closing, this.#closing])
  }

  #drop(): void {
    this.#link?.close()
    this.#link = undefined
  }
}
