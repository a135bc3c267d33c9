import type { AppendSession, Stream } from '../../../src/index.ts'
import { ownedBatch } from '../../../src/model/append-input.ts'
import { concatBytes } from '../../../src/model/bytes.ts'
import { HeadwaterError } from '../../../src/model/errors.ts'
import { isPromise, type MaybePromise } from '../../../src/runtime/maybe-promise.ts'
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
import type { DrainableSession } from '../session-drain.ts'

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

/**
 * Opens an append session: the reply begins once the stream is found, then inputs arrive while acks are sent.
 * Inputs are taken even if the reply is not read yet, because some runtimes send it only after the end of the
 * request.
 */
async function appendSession(request: ApiRequest, stream: Stream): Promise<Reply> {
  request.settings.drain.assertOpen()
  const chunks = request.exchange.chunks()
  const session = await stream.appendSession()
  return streamReply(
    sessionContentType(request.headerPrefix),
    new AppendSessionBody(request, session, chunks),
  )
}

/** Acks that a client may leave unread, about 2 MiB. */
const UNREAD_ACKS_MAX = 16_384

/**
 * The response of an append session: the acks in the order of the inputs, then a terminal frame if the
 * session failed. The first failure in the order of the inputs is the one reported.
 */
class AppendSessionBody implements AsyncIterableIterator<Uint8Array>, DrainableSession {
  readonly #request: ApiRequest
  readonly #session: AppendSession
  readonly #chunks: AsyncIterator<Uint8Array, undefined>
  /** What the client has not read yet. */
  #frames: Uint8Array[] = []
  /** The inputs whose acks the client has not read yet. */
  #unread = 0
  #isRead = false
  /** Set when nothing is added to the frames any more. */
  #isOver = false
  #advisesReconnect = false
  /** Why no further inputs are taken, although the client may send more. */
  #failure: unknown
  /** Why the upload broke off. */
  #abandoned: { readonly reason: unknown } | undefined
  #wakeReader = () => {}
  #wakeWriter = () => {}
  #stopWaiting = () => {}

  constructor(request: ApiRequest, session: AppendSession, chunks: AsyncIterator<Uint8Array, undefined>) {
    this.#request = request
    this.#session = session
    this.#chunks = chunks
    session.acks$.subscribe({
      next: (ack) =>
        this.#push(encodeMessageFrame(encodeAppendAck(ack), { reconnectAdvised: this.#advisesReconnect })),
      error: (error: unknown) => this.#end(error),
      complete: () => this.#end(this.#failure),
    })
    request.settings.drain.add(this)
    void this.#takeInputs()
  }

  /** Makes all further acks advise the client to reconnect. */
  advise(): void {
    this.#advisesReconnect = true
  }

  /** Takes no further inputs: the session ends with the error once those that were taken are acknowledged. */
  end(error: HeadwaterError): void {
    this.#failure ??= error
    this.#stopReading()
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
    this.#wakeWriter()
    return frames.length > 0 ? { done: false, value: concatBytes(frames) } : { done: true, value: undefined }
  }

  /** The client has left. */
  async return(): Promise<IteratorResult<Uint8Array, undefined>> {
    this.#end()
    this.#frames = []
    return { done: true, value: undefined }
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  /**
   * Takes inputs until the client has sent everything or has left, or the session has failed. Never rejects.
   */
  async #takeInputs(): Promise<void> {
    try {
      await this.#submitFrames()
    } catch (error) {
      this.#failure ??= error
    }
    // Its acks and its failure arrive at the subscription.
    await this.#session.close().catch(() => {})
    this.#request.settings.drain.delete(this)
  }

  async #submitFrames(): Promise<void> {
    const { pendingBodies } = this.#request.settings
    const decoder = new FrameDecoder()
    let reserved = 0
    try {
      for (;;) {
        const chunk = await this.#nextChunk()
        if (chunk === undefined || this.#isStopped) return
        if (chunk.done) break
        for (const frame of decoder.decode(chunk.value)) {
          // Awaited only if need be: a session has many small batches.
          const received = receivedOf(frame)
          const message = isPromise(received) ? await received : received
          const { inputs, conditions } = decodeAppendInput(message, 'bad_frame')
          if (this.#unread >= UNREAD_ACKS_MAX) await this.#room()
          if (this.#isStopped) return
          this.#unread++
          await this.#session.submitBatch(ownedBatch(inputs, conditions, message))
        }
        pendingBodies.acquire(decoder.heldBytes - reserved)
        reserved = decoder.heldBytes
      }
      decoder.end()
    } finally {
      pendingBodies.release(reserved)
    }
  }

  /** Resolves to undefined if the client has left, or once no further inputs are taken. */
  #nextChunk(): Promise<IteratorResult<Uint8Array, undefined> | undefined> {
    return new Promise((resolve) => {
      this.#stopWaiting = () => resolve(undefined)
      this.#chunks.next().then(resolve, (reason: unknown) => {
        this.#abandoned = { reason }
        this.#end()
      })
    })
  }

  get #isStopped(): boolean {
    return this.#isOver || this.#failure !== undefined
  }

  /**
   * Resolves when the client may have one more unread ack, or the response has ended. A runtime that has not
   * begun to send the response may be waiting for the end of the request: to wait for it would be a deadlock,
   * so the session then fails.
   */
  async #room(): Promise<void> {
    while (this.#unread >= UNREAD_ACKS_MAX && !this.#isStopped) {
      if (!this.#isRead) {
        throw new HeadwaterError('unavailable', 'too many inputs before the runtime sends the first ack')
      }
      await new Promise<void>((resolve) => {
        this.#wakeWriter = resolve
      })
    }
  }

  #push(frame: Uint8Array): void {
    if (this.#isOver) return
    this.#frames.push(frame)
    this.#wakeReader()
  }

  /** Ends the response, with a terminal frame if there is an error. */
  #end(error?: unknown): void {
    if (this.#isOver) return
    if (error !== undefined) {
      this.#request.report(error)
      const { status, text } = errorBody(error)
      this.#push(encodeTerminalFrame(status, text))
    }
    this.#isOver = true
    this.#wakeReader()
    this.#stopReading()
  }

  /** Stops waiting for the upload, and discards its rest. */
  #stopReading(): void {
    this.#stopWaiting()
    this.#wakeWriter()
    void this.#chunks.return?.()
  }
}

function receivedOf(frame: Frame): MaybePromise<Uint8Array> {
  if (frame.kind === 'message') return messageOf(frame)
  throw new HeadwaterError('bad_frame', 'a client must not send a terminal frame')
}
