import type { AppendSession, AppendTicket, Stream } from '../../../src/index.ts'
import type { AppendInput } from '../../../src/model/append-input.ts'
import { concatBytes } from '../../../src/model/bytes.ts'
import { HeadwaterError } from '../../../src/model/errors.ts'
import { macrotask } from '../../../src/runtime/macrotask.ts'
import { andThen, isPromise, type MaybePromise } from '../../../src/runtime/maybe-promise.ts'
import type { RejectingQuota } from '../../../src/runtime/rejecting-quota.ts'
import { errorBody } from '../../../src/wire/errors.ts'
import {
  encodeMessageFrame,
  encodeTerminalFrame,
  type Frame,
  FrameDecoder,
  messageOf,
} from '../../../src/wire/frame.ts'
import {
  APPEND_HEADER,
  type AppendHeaderReply,
  decodeAppendHeader,
  sessionContentType,
} from '../../../src/wire/headers.ts'
import { appendAckJson, decodeAppendJson } from '../../../src/wire/json-records.ts'
import { mediaKind, requireJson } from '../../../src/wire/media-type.ts'
import { decodeAppendInput, encodeAppendAck } from '../../../src/wire/protobuf.ts'
import { wholeBody } from '../body.ts'
import { jsonReply, protobufReply, type Reply, streamReply } from '../reply.ts'
import type { ApiRequest, Endpoint } from '../request.ts'

/** Appends one batch, or opens an append session. Errors in the body come before those of the stream. */
export const append: Endpoint = async (request, hw) => {
  const stream = request.identifiedStreamOf(hw)
  const { exchange } = request
  const contentType = exchange.header('content-type')
  const kind = mediaKind(contentType)
  if (kind === 'session') return appendSession(request, stream)
  const isProtobuf = kind === 'protobuf'
  const format = isProtobuf ? undefined : request.dataFormat
  if (!isProtobuf && kind !== 'json') requireJson(contentType)
  const reading = wholeBody(request, isProtobuf ? 'bad_proto' : 'bad_json')
  const body = reading instanceof Promise ? await reading : reading
  const { inputs, conditions } =
    format === undefined ? decodeAppendInput(body, 'bad_proto') : decodeAppendJson(body, format)
  const extension = exchange.header(APPEND_HEADER)
  const extended = extension === undefined ? conditions : { ...conditions, ...decodeAppendHeader(extension) }
  const ack = await stream.append(inputs, extended)
  const isForProtobuf = mediaKind(exchange.header('accept')) === 'protobuf'
  const reply = isForProtobuf ? protobufReply(encodeAppendAck(ack)) : jsonReply(appendAckJson(ack))
  if (extension === undefined && ack.duplicate === undefined) return reply
  const type = isForProtobuf ? 'application/protobuf' : 'application/json'
  const result: AppendHeaderReply = ack.duplicate ? 'duplicate' : 'stored'
  // Member by member: spreading costs more than everything else that is done for the header.
  const headers = { 'content-type': type, [APPEND_HEADER]: result }
  return { status: 200, headers, body: reply.body }
}

type Chunks = AsyncIterator<Uint8Array, undefined>

/**
 * Opens an append session: the reply begins once the stream is found, then inputs arrive while acks are sent.
 * Inputs are taken even if the reply is not read yet, because some runtimes send it only after the end of the
 * request.
 */
async function appendSession(request: ApiRequest, stream: Stream): Promise<Reply> {
  const { drain, pendingBodies } = request.settings
  drain.assertOpen()
  const chunks = request.exchange.chunks()
  const session = await stream.appendSession()
  const acks = new AckFrames((error) => request.report(error))
  // Ends a session whose client is silent: the engine closes, or the access token is revoked.
  const failing = session.acks$.subscribe({
    error: (error: unknown) => {
      // Acks that are ready come first; those that are not would be too late.
      acks.end(error)
      void macrotask().then(() => acks.cut(error))
    },
  })
  const inputs = new Inputs(chunks, session, acks, pendingBodies)
  const drained = {
    advise: () => acks.advise(),
    end: (error: HeadwaterError) => inputs.stop(error),
  }
  drain.add(drained)
  void inputs.take().finally(() => {
    drain.delete(drained)
    failing.unsubscribe()
  })
  return streamReply(sessionContentType(request.headerPrefix), acks)
}

/** The inputs of an append session. */
class Inputs {
  readonly #chunks: Chunks
  readonly #session: AppendSession
  readonly #acks: AckFrames
  readonly #pendingBodies: RejectingQuota
  /** Why no further inputs are taken. */
  #stopped: HeadwaterError | undefined

  constructor(chunks: Chunks, session: AppendSession, acks: AckFrames, pendingBodies: RejectingQuota) {
    this.#chunks = chunks
    this.#session = session
    this.#acks = acks
    this.#pendingBodies = pendingBodies
  }

  /**
   * Takes inputs until the client has sent everything or has left, or the session has failed. Never rejects.
   */
  async take(): Promise<void> {
    try {
      await this.#takeFrames()
      this.#acks.end(this.#stopped)
    } catch (error) {
      this.#acks.end(error)
    } finally {
      await this.#acks.over
      await this.#session.close().catch(() => {})
    }
  }

  /** Takes no further inputs: the session ends with the error once those that were taken are acknowledged. */
  stop(error: HeadwaterError): void {
    this.#stopped = error
    // Also ends a pending `next`.
    void this.#chunks.return?.()
  }

  async #takeFrames(): Promise<void> {
    const acks = this.#acks
    void acks.over.then(() => this.#chunks.return?.())
    const decoder = new FrameDecoder()
    let reserved = 0
    try {
      for (;;) {
        const chunk = await this.#chunks.next().catch((reason: unknown) => {
          acks.abandon(reason)
          return undefined
        })
        if (chunk === undefined || this.#isOver) return
        if (chunk.done) break
        for (const frame of decoder.decode(chunk.value)) {
          // Awaited only if need be: a session has many small batches.
          const input = inputOf(frame)
          const { inputs, conditions } = isPromise(input) ? await input : input
          const room = acks.room()
          if (room !== undefined) await room
          if (this.#isOver) return
          acks.add(await this.#session.submit(inputs, conditions))
        }
        this.#pendingBodies.acquire(decoder.heldBytes - reserved)
        reserved = decoder.heldBytes
      }
      decoder.end()
    } finally {
      this.#pendingBodies.release(reserved)
    }
  }

  get #isOver(): boolean {
    return this.#acks.isOver || this.#stopped !== undefined
  }
}

function inputOf(frame: Frame): MaybePromise<AppendInput> {
  if (frame.kind === 'terminal') {
    throw new HeadwaterError('bad_frame', 'a client must not send a terminal frame')
  }
  return andThen(messageOf(frame), (message) => decodeAppendInput(message, 'bad_frame'))
}

/** Acks that a client may leave unread, about 2 MiB. */
const UNREAD_ACKS_MAX = 16_384

/**
 * The response of an append session: the acks in the order of the inputs, then a terminal frame if the
 * session failed. The first failure in the order of the inputs is the one reported.
 */
class AckFrames implements AsyncIterableIterator<Uint8Array> {
  /** Resolves when the session has failed, has ended, or was abandoned. */
  readonly over: Promise<void>
  readonly #report: (error: unknown) => void
  #queue: Promise<void> = Promise.resolve()
  #frames: Uint8Array[] = []
  #unread = 0
  #isOver = false
  #isRead = false
  #advisesReconnect = false
  #abandoned: { readonly reason: unknown } | undefined
  #resolveOver!: () => void
  #wakeReader: (() => void) | undefined
  #wakeWriter: (() => void) | undefined

  constructor(report: (error: unknown) => void) {
    this.#report = report
    this.over = new Promise((resolve) => {
      this.#resolveOver = resolve
    })
  }

  get isOver(): boolean {
    return this.#isOver
  }

  /** Makes all further acks advise the client to reconnect. */
  advise(): void {
    this.#advisesReconnect = true
  }

  add(ticket: AppendTicket): void {
    this.#unread++
    this.#enqueue(async () => {
      try {
        const ack = encodeAppendAck(await ticket.ack())
        this.#push(encodeMessageFrame(ack, { reconnectAdvised: this.#advisesReconnect }))
      } catch (error) {
        this.#fail(error)
      }
    })
  }

  /**
   * Ends the response after the acks so far. An error becomes the terminal frame unless an append has failed
   * before.
   */
  end(error?: unknown): void {
    this.#enqueue(() => {
      if (error === undefined) this.#finish()
      else this.#fail(error)
    })
  }

  /** Ends the response at once with a terminal frame, without waiting for outstanding acks. */
  cut(error: unknown): void {
    this.#fail(error)
  }

  /** Makes the response fail, so that it cannot be mistaken for a complete one. */
  abandon(reason: unknown): void {
    if (this.#isOver) return
    this.#abandoned = { reason }
    this.#finish()
  }

  /**
   * Resolves when the client may have one more unread ack, or the response has ended. Returns undefined
   * instead of a promise if no wait is needed. A runtime that has not begun to send the response may be
   * waiting for the end of the request: to wait for it would be a deadlock, so the session then fails.
   */
  room(): Promise<void> | undefined {
    return this.#unread >= UNREAD_ACKS_MAX && !this.#isOver ? this.#awaitRoom() : undefined
  }

  async #awaitRoom(): Promise<void> {
    while (this.#unread >= UNREAD_ACKS_MAX && !this.#isOver) {
      if (!this.#isRead) {
        this.end(new HeadwaterError('unavailable', 'too many inputs before the runtime sends the first ack'))
        await this.over
        return
      }
      await new Promise<void>((resolve) => {
        this.#wakeWriter = resolve
      })
    }
  }

  /** All frames that are ready, in one chunk. */
  async next(): Promise<IteratorResult<Uint8Array, undefined>> {
    this.#isRead = true
    while (this.#frames.length === 0 && !this.#isOver) {
      await new Promise<void>((resolve) => {
        this.#wakeReader = resolve
      })
    }
    if (this.#abandoned !== undefined) throw this.#abandoned.reason
    const frames = this.#frames
    this.#frames = []
    this.#unread -= frames.length
    this.#wakeWriter?.()
    return frames.length > 0 ? { done: false, value: concatBytes(frames) } : { done: true, value: undefined }
  }

  /** The client has left. */
  async return(): Promise<IteratorResult<Uint8Array, undefined>> {
    this.#frames = []
    this.#finish()
    return { done: true, value: undefined }
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  #enqueue(step: () => void | Promise<void>): void {
    this.#queue = this.#queue.then(step)
  }

  #push(frame: Uint8Array): void {
    if (this.#isOver) return
    this.#frames.push(frame)
    this.#wakeReader?.()
  }

  #fail(error: unknown): void {
    if (this.#isOver) return
    this.#report(error)
    const { status, text } = errorBody(error)
    this.#push(encodeTerminalFrame(status, text))
    this.#finish()
  }

  #finish(): void {
    this.#isOver = true
    this.#resolveOver()
    this.#wakeReader?.()
    this.#wakeWriter?.()
  }
}
