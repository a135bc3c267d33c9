import type { AppendBatch } from '../../../src/model/append-input.ts'
import { HeadwaterError } from '../../../src/model/errors.ts'
import type { AppendAck } from '../../../src/model/info.ts'
import { SharedSignal } from '../../../src/runtime/abort.ts'
import { Fifo } from '../../../src/runtime/fifo.ts'
import { FRAME_PAYLOAD_MAX, FrameDecoder, type MessageFrame } from '../../../src/wire/frame.ts'
import { sessionContentType } from '../../../src/wire/headers.ts'
import { Malformed } from '../../../src/wire/json.ts'
import { mediaTypeEssence } from '../../../src/wire/media-type.ts'
import { decodeAppendAck } from '../../../src/wire/protobuf.ts'
import { assertAck, type SentBatch } from '../append-requests.ts'
import type { OpenResponse } from '../call.ts'
import { decompressFrame } from '../compressed-frames.ts'
import type { ClientCore } from '../core.ts'
import {
  connectionFailure,
  type Failure,
  failureOf,
  mayBeSent,
  unexpectedResponse,
  withEffects,
} from '../errors.ts'
import { isSilence, silenceError } from '../exchange.ts'
import type { RemoteTarget } from '../stream-target.ts'
import { type FrameMemory, FrameUpload } from './frame-upload.ts'

/** Receives what a connection of an append session does. */
export interface AppendLinkListener {
  /** Receives each ack, in the order of the batches. */
  onAck(ack: AppendAck): void
  /** Called when the server is about to stop: further batches should use another connection. */
  onAdvice(): void
  /**
   * Called once with the reason, unless `end` was called. `isLost` if the session may be continued over
   * another connection.
   */
  onEnd(error: HeadwaterError, isLost: boolean): void
}

/** One connection of an append session. */
export class AppendLink {
  readonly #core: ClientCore
  readonly #opened: OpenResponse
  readonly #body: FrameUpload
  /** Batches without an ack, in order. */
  readonly #sent = new Fifo<SentBatch>()
  #listener: AppendLinkListener | undefined
  #isOver = false
  /** Cancels the timer for all acks. An ack moves `#dueAt`; the timer is scheduled again when it fires. */
  #cancelTimer: (() => void) | undefined
  #dueAt = 0
  #isDueLater = false

  constructor(core: ClientCore, opened: OpenResponse, body: FrameUpload) {
    this.#core = core
    this.#opened = opened
    this.#body = body
  }

  /** Begins to receive acks. Call it once, before batches are sent. */
  start(listener: AppendLinkListener): void {
    this.#listener = listener
    void this.#receive()
  }

  /** Sends a batch. */
  send(batch: AppendBatch): void {
    const { records, matchSeqNum } = batch
    this.#sent.push({ count: records.length, matchSeqNum })
    if (this.#sent.length === 1) this.#awaitAck()
    this.#body.send(batch)
  }

  /** Ends the session: no further batches. */
  end(reason?: unknown): void {
    this.#isOver = true
    this.#cancelTimer?.()
    this.#body.end()
    // Without acks that are due, the server has nothing left to say.
    this.#opened.exchange.end(reason)
  }

  async #receive(): Promise<void> {
    const { exchange, response } = this.#opened
    const decoder = new FrameDecoder()
    try {
      for await (const chunk of exchange.chunks(response, true)) {
        for (const frame of decoder.decode(chunk)) {
          if (frame.kind === 'terminal') {
            const { error, isTransient } = failureOf(frame.status, frame.body, false)
            // The token has ended: what is not acknowledged may be stored.
            const isRevoked = error.code === 'authn'
            const isLost =
              (isTransient && (error.mayHaveEffects || error.code === 'server_draining')) ||
              (isRevoked && this.#core.sender.renewToken())
            this.#end(isRevoked ? withEffects(error, true) : error, isLost)
            return
          }
          if (frame.reconnectAdvised && !this.#isOver) this.#listener?.onAdvice()
          this.#ack(decodeAppendAck(await messageOf(frame)))
        }
      }
      this.#end(connectionFailure(new Error('the response ended'), true).error, true)
    } catch (error) {
      this.#end(...this.#lost(error))
    }
  }

  #ack(ack: AppendAck): void {
    const batch = this.#sent.shift()
    if (batch === undefined) throw new Malformed('an acknowledgement of nothing')
    assertAck(ack, batch)
    if (this.#sent.length > 0) this.#awaitAck()
    this.#listener?.onAck(ack)
  }

  #lost(error: unknown): [error: HeadwaterError, isLost: boolean] {
    const { closing } = this.#core
    if (closing.aborted) return [connectionFailure(closing.reason, true).error, false]
    const isMalformed = error instanceof Malformed || (HeadwaterError.is(error) && error.code === 'bad_frame')
    if (isMalformed) return [unexpectedResponse((error as Error).message, true), false]
    return [connectionFailure(error, mayBeSent(error)).error, true]
  }

  #end(error: HeadwaterError, isLost: boolean): void {
    if (this.#isOver) return
    this.end(isSilence(error) ? error : undefined)
    this.#listener?.onEnd(error, isLost)
  }

  #awaitAck(): void {
    const { clock, requestTimeoutMs } = this.#core.settings
    this.#dueAt = clock.now() + requestTimeoutMs
    this.#isDueLater = this.#cancelTimer !== undefined
    if (!this.#isDueLater) this.#schedule(requestTimeoutMs)
  }

  #schedule(delayMs: number): void {
    const { clock, requestTimeoutMs } = this.#core.settings
    this.#cancelTimer = clock.schedule(delayMs, () => {
      this.#cancelTimer = undefined
      if (this.#sent.length === 0) return
      if (this.#isDueLater) {
        this.#isDueLater = false
        const remainingMs = this.#dueAt - clock.now()
        // The clock may have been set meanwhile.
        const isPlausible = remainingMs > 0 && remainingMs <= requestTimeoutMs
        this.#schedule(isPlausible ? remainingMs : requestTimeoutMs)
        return
      }
      const message = `no acknowledgement within ${Math.ceil(requestTimeoutMs / 1000)} seconds`
      this.#end(silenceError(message, true), true)
    })
  }
}

async function messageOf({ compression, payload }: MessageFrame): Promise<Uint8Array> {
  if (compression === undefined) return payload
  const message = decompressFrame(compression, payload, FRAME_PAYLOAD_MAX)
  if (message === undefined) throw new Malformed(`a frame is compressed with ${compression}`)
  return message
}

/** Opens a connection. Resolves to undefined if the server takes no append sessions, or to the failure. */
export async function openAppendLink(
  core: ClientCore,
  { path, basin, recordHeaders }: RemoteTarget,
  memory: FrameMemory,
): Promise<AppendLink | Failure | undefined> {
  const body = new FrameUpload(memory)
  const contentType = sessionContentType(core.settings.headerPrefix)
  const opened = await core.sender.open(
    {
      method: 'POST',
      path: `${path}/records`,
      basin,
      vendor: recordHeaders,
      accept: 'application/protobuf',
      contentType,
      upload: (stream) => body.begin(stream),
      isAppend: true,
      isRepeatable: true,
    },
    new SharedSignal(),
  )
  if ('error' in opened) {
    body.end()
    // A server without sessions takes the request for one in JSON.
    return opened.error.code === 'bad_json' ? undefined : opened
  }
  const sent = mediaTypeEssence(opened.response.headers.get('content-type'))
  if (sent === contentType) return new AppendLink(core, opened, body)
  opened.exchange.end()
  body.end()
  return undefined
}
