import type { ClientHttp2Stream } from 'node:http2'
import { discardedError, type PreparedAppend, type SessionAppender } from '../../src/api/append-session.ts'
import { type AppendBatch, ownedBatch } from '../../src/model/append-input.ts'
import { HeadwaterError } from '../../src/model/errors.ts'
import type { AppendAck } from '../../src/model/info.ts'
import { SharedSignal } from '../../src/runtime/abort.ts'
import { Fifo } from '../../src/runtime/queues.ts'
import { FrameDecoder, messageFrameHead } from '../../src/wire/frame.ts'
import { sessionContentType } from '../../src/wire/headers.ts'
import { Malformed } from '../../src/wire/json.ts'
import { decodeAppendAck, decodeAppendInput, encodeAppendInput } from '../../src/wire/protobuf.ts'
import { appendOnce, assertAck, type ExpectedAck, SessionAppends } from './append.ts'
import type { OpenSession, SessionCall } from './call.ts'
import { createIfMissing } from './creation.ts'
import {
  clientClosedError,
  connectionFailure,
  Failure,
  failureOf,
  NoHttp2,
  Silence,
  unwrapFailure,
  withEffects,
} from './errors.ts'
import { payloadOf } from './read-events.ts'
import type { Sender } from './sender.ts'
import type { RemoteTarget } from './stream-target.ts'

/**
 * Opens the appender of a session over HTTP/2. Resolves to undefined if the server does not speak it. Creates
 * the stream if it is missing and may be created.
 */
export async function openStreamAppender(
  sender: Sender,
  target: RemoteTarget,
): Promise<SessionAppender | undefined> {
  const open = () => createIfMissing(sender, target, target.autoCreate, () => openLink(sender, target))
  try {
    return new StreamAppender(sender, target, open, await open())
  } catch (error) {
    if (error instanceof NoHttp2) return undefined
    throw error
  }
}

/** A connection of an append session. */
interface Link extends OpenSession {
  readonly upload: FrameUpload
}

/** Opens a connection, again after transient failures. */
async function openLink(sender: Sender, { path, recordsAddress }: RemoteTarget): Promise<Link> {
  const mediaType = sessionContentType(sender.settings.headerPrefix)
  let upload: FrameUpload | undefined
  const call: SessionCall = {
    method: 'POST',
    path: `${path}/records`,
    ...recordsAddress,
    accept: 'application/protobuf',
    contentType: mediaType,
    mediaType,
    upload: (stream) => {
      upload = new FrameUpload(stream)
    },
    isAppend: true,
    isRepeatable: true,
  }
  const opened = await unwrapFailure(sender.retrying(call, () => sender.open(call, new SharedSignal())))
  return { ...opened, upload: upload! }
}

/** A batch that waits for its acknowledgement, as it is sent. */
interface PendingFrame extends ExpectedAck {
  /** A part of the frame. */
  readonly message: Uint8Array
  readonly frame: Uint8Array
  readonly acked: (ack: AppendAck) => void
  readonly failed: (error: unknown) => void
  wasSent: boolean
}

/**
 * Appends the batches of a session over one connection in both directions. If it is lost, the batches that
 * may be stored are appended again where their conditions allow it; otherwise the session fails.
 */
class StreamAppender implements SessionAppender {
  readonly group = new SessionAppends()
  readonly #sender: Sender
  readonly #target: RemoteTarget
  readonly #open: () => Promise<Link>
  /** Batches without an ack, in order. Those that were sent come first. */
  readonly #pending = new Fifo<PendingFrame>()
  #link: Link | undefined
  #isReconnecting = false
  #isReleased = false
  /** Connections since the last ack that the server ended because it is about to stop. */
  #drains = 0
  /** Cancels the timer for the next acks. */
  #cancelTimer: (() => void) | undefined

  /** @param open Opens another connection. */
  constructor(sender: Sender, target: RemoteTarget, open: () => Promise<Link>, link: Link) {
    this.#sender = sender
    this.#target = target
    this.#open = open
    this.#use(link)
  }

  prepare(batch: AppendBatch): PreparedAppend {
    const { message, frame } = encodedFrame(batch)
    const count = batch.records.length
    const { matchSeqNum } = batch
    return (started) =>
      new Promise((acked, failed) => {
        if (this.group.failed) {
          failed(discardedError(this.group.failure))
          return
        }
        const pending: PendingFrame = { message, frame, count, matchSeqNum, acked, failed, wasSent: false }
        this.#pending.push(pending)
        if (this.#link === undefined) void this.#reconnect()
        else this.#send(pending, this.#link)
        started()
      })
  }

  release(): void {
    this.#isReleased = true
    this.#drop()
  }

  #use(link: Link): void {
    this.#link = link
    void this.#receive(link)
    for (const pending of this.#pending) this.#send(pending, link)
  }

  /** Ends the connection: no further batches. */
  #drop(reason?: unknown): void {
    const link = this.#link
    this.#link = undefined
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
    link?.upload.end()
    link?.exchange.end(reason)
  }

  #send(pending: PendingFrame, link: Link): void {
    pending.wasSent = true
    link.upload.send(pending.frame)
    if (this.#pending.first === pending) this.#awaitAck()
  }

  /** Receives the acks of a connection until it ends. */
  async #receive(link: Link): Promise<void> {
    const { exchange, response } = link
    const decoder = new FrameDecoder()
    try {
      for await (const chunk of exchange.chunks(response, true)) {
        for (const frame of decoder.decode(chunk)) {
          if (frame.kind === 'terminal') throw failureOf(frame.status, frame.body, false)
          // Not awaited for nothing: small acks come by the thousand.
          this.#acked(frame.compression === undefined ? frame.payload : await payloadOf(frame))
          if (this.#link !== link) return
        }
        // Once for all acks that came together.
        this.#awaitAck()
      }
      throw new Error('the response ended')
    } catch (error) {
      if (this.#link === link) this.#lost(this.#failureOf(error))
    }
  }

  #acked(message: Uint8Array): void {
    const first = this.#pending.first
    if (first?.wasSent !== true) throw new Malformed('an acknowledgement of nothing')
    const ack = assertAck(decodeAppendAck(message), first)
    this.#drains = 0
    this.#pending.shift()
    first.acked(ack)
  }

  /** Returns the failure of the connection: transient if the session may continue over another one. */
  #failureOf(error: unknown): Failure {
    const { closing, token } = this.#sender
    if (closing.aborted) return new Failure(withEffects(clientClosedError(), true))
    const failure = connectionFailure(error, false)
    // If the token has ended, what is not acknowledged may be stored.
    if (failure.error.code !== 'authn') return failure
    return new Failure(withEffects(failure.error, true), token.renew())
  }

  #lost({ error, isTransient }: Failure, reason?: unknown): void {
    this.#drop(reason)
    const isDraining = error.code === 'server_draining'
    // What the server did not acknowledge, it did not take.
    if (isDraining) {
      this.#drains++
      for (const pending of this.#pending) pending.wasSent = false
    }
    if (!isTransient || !(error.mayHaveEffects || isDraining)) this.#fail(error)
    else if (this.#pending.length > 0) void this.#reconnect(error)
  }

  /** The first batch fails, and nothing is known to be stored of those behind it. */
  #fail(error: unknown): void {
    this.group.fail(error)
    const [first, ...behind] = this.#pending.clear()
    if (first === undefined) return
    const isUnknown = first.wasSent && !(HeadwaterError.is(error) && !error.mayHaveEffects)
    first.failed(HeadwaterError.is(error) ? withEffects(error, isUnknown) : error)
    for (const { failed, wasSent } of behind) failed(isUnknown && wasSent ? error : discardedError(error))
  }

  /** Settles what may be stored, one batch at a time, then sends the others over another connection. */
  async #reconnect(lost?: HeadwaterError): Promise<void> {
    if (this.#isReconnecting) return
    this.#isReconnecting = true
    try {
      for (let first = this.#pending.first; first?.wasSent === true; first = this.#pending.first) {
        if (first.matchSeqNum === undefined) throw lost
        const ack = await appendOnce(this.#sender, this.#target, decodedBatch(first), true)
        this.#pending.shift()
        first.acked(ack)
      }
      if (lost?.code === 'server_draining') await this.#pauseBetweenDrains(lost)
      this.#link = await this.#open()
      if (this.#isReleased) this.#drop()
      else this.#use(this.#link)
    } catch (error) {
      this.#fail(error)
    } finally {
      this.#isReconnecting = false
    }
  }

  /** Another server may take the session over at once. Throws the error if none does. */
  async #pauseBetweenDrains(lost: HeadwaterError): Promise<void> {
    const pauses = this.#drains - 1
    if (pauses > this.#sender.settings.retries) throw lost
    if (pauses > 0) await this.#sender.pause(pauses, new Failure(lost, true))
  }

  /** Loses the connection unless an ack arrives in time, if one is due. */
  #awaitAck(): void {
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
    if (this.#pending.first?.wasSent !== true) return
    const { clock, requestTimeoutMs } = this.#sender.settings
    this.#cancelTimer = clock.schedule(requestTimeoutMs, () => {
      const seconds = Math.ceil(requestTimeoutMs / 1000)
      const silence = new Silence(`no acknowledgement within ${seconds} seconds`)
      this.#lost(connectionFailure(silence, false), silence)
    })
  }
}

/** Encodes a batch as a message, and as the frame that contains it. */
function encodedFrame(batch: AppendBatch): Pick<PendingFrame, 'message' | 'frame'> {
  let frame: Uint8Array | undefined
  const message = encodeAppendInput(batch, batch, (length) => {
    const head = messageFrameHead(length)
    // All of it is written. Clearing it before would take a tenth of the time of an append.
    frame = Buffer.allocUnsafeSlow(head.length + length)
    frame.set(head)
    return frame.subarray(head.length)
  })
  return { message, frame: frame! }
}

/** Decodes the batch of a message, to settle it by a request. */
function decodedBatch({ message }: PendingFrame): AppendBatch {
  const { inputs, conditions } = decodeAppendInput(message, 'bad_proto')
  return ownedBatch(inputs, conditions, message)
}

/** The body of an append session. Batches of one turn go out together. */
class FrameUpload {
  readonly #stream: ClientHttp2Stream

  constructor(stream: ClientHttp2Stream) {
    this.#stream = stream
  }

  send(frame: Uint8Array): void {
    const stream = this.#stream
    if (stream.writableCorked === 0) {
      stream.cork()
      queueMicrotask(() => stream.uncork())
    }
    stream.write(frame)
  }

  end(): void {
    this.#stream.end()
  }
}
