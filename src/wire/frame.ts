import { EMPTY_BYTES, textOf } from '../model/bytes.ts'
import { HeadwaterError } from '../model/errors.ts'
import type { Compression } from './codec.ts'

/** The largest length in the prefix of a frame: flag byte and payload (docs/protocol.md "Frames"). */
const FRAME_LENGTH_MAX = 2_097_152
/** The largest payload of a frame, compressed or not, in bytes. */
export const FRAME_PAYLOAD_MAX = FRAME_LENGTH_MAX - 1

/** A frame that carries one protobuf message. */
export interface MessageFrame {
  readonly kind: 'message'
  /** The compression of the payload; undefined for none. */
  readonly compression: Compression | undefined
  /** Whether the server is about to close: the client should finish, then reconnect. */
  readonly reconnectAdvised: boolean
  /** The message. May be a view of the received chunk. */
  readonly payload: Uint8Array
}

/** The last frame of a session that failed. */
interface TerminalFrame {
  readonly kind: 'terminal'
  /** The HTTP status of the error. */
  readonly status: number
  /** The JSON text of the error's body. */
  readonly body: string
}

export type Frame = MessageFrame | TerminalFrame

export const PREFIX_LENGTH = 3
export const FLAG_TERMINAL = 0x80
const FLAG_COMPRESSION = 0x60
export const FLAG_ZSTD = 0x20
export const FLAG_GZIP = 0x40
export const FLAG_RECONNECT_ADVISED = 0x10
export const STATUS_LENGTH = 2

/** The first allocation for a frame that arrives in several chunks. It grows with the bytes that arrive. */
const GATHER_LENGTH_MIN = 16_384
/** How many times as long an allocation is as the bytes that have arrived. */
const GATHER_GROWTH = 4

/** Memory of a frame that is no longer used, for the next one of any session. At most as long as a frame. */
let spare: Uint8Array = EMPTY_BYTES

/**
 * Splits the bytes of a session into frames. Holds at most one incomplete frame, in at most four times the
 * memory of the bytes that have arrived, or in the memory of an earlier frame.
 */
export class FrameDecoder {
  /** The length in the prefix, as far as its bytes have arrived. */
  #frameLength = 0
  #prefixLength = 0
  /** The bytes of the frame (flag and payload) that have arrived. */
  #gathered: Uint8Array = EMPTY_BYTES
  #gatheredLength = 0
  /** The memory of the last frame that did not arrive in one chunk. */
  #lastGathered: Uint8Array = EMPTY_BYTES
  #ended = false

  /** The memory of the incomplete frame, in bytes. */
  get heldBytes(): number {
    return this.#gathered.length
  }

  /** Whether a frame has begun and is not complete. */
  get isWithinFrame(): boolean {
    return this.#prefixLength > 0
  }

  /** Overwrites the payload of the last frame some time from now on. */
  reclaim(): void {
    if (this.#lastGathered.length > spare.length) spare = this.#lastGathered
    this.#lastGathered = EMPTY_BYTES
  }

  /** Ends the session. Throws `bad_frame` if it ends within a frame. */
  end(): void {
    if (this.#prefixLength > 0) throw badFrame('the last frame is cut short')
  }

  /**
   * Yields the frames that a chunk completes; run it to its end before the next chunk. The payload of a frame
   * within one chunk is a view of it. Throws `bad_frame` as early as possible; the decoder cannot be used
   * afterwards.
   */
  *decode(chunk: Uint8Array): Generator<Frame, void, undefined> {
    let offset = 0
    while (offset < chunk.length) {
      if (this.#ended) throw badFrame('data after a terminal frame')
      if (this.#prefixLength < PREFIX_LENGTH) {
        this.#frameLength = (this.#frameLength << 8) | chunk[offset++]!
        if (++this.#prefixLength === PREFIX_LENGTH) checkLength(this.#frameLength)
        continue
      }
      const missing = this.#frameLength - this.#gatheredLength
      const available = chunk.subarray(offset, offset + missing)
      offset += available.length
      if (available.length < missing) {
        this.#gather(available)
        return
      }
      const frame = parseFrame(this.#complete(available))
      this.#ended = frame.kind === 'terminal'
      yield frame
    }
  }

  #gather(part: Uint8Array): void {
    const length = this.#gatheredLength + part.length
    if (length > this.#gathered.length) {
      const grown =
        takeSpare(this.#frameLength) ??
        new Uint8Array(Math.min(this.#frameLength, Math.max(GATHER_LENGTH_MIN, GATHER_GROWTH * length)))
      grown.set(this.#gathered.subarray(0, this.#gatheredLength))
      this.#gathered = grown
    }
    this.#gathered.set(part, this.#gatheredLength)
    this.#gatheredLength = length
  }

  #complete(lastPart: Uint8Array): Uint8Array {
    let content = lastPart
    if (this.#gatheredLength > 0) {
      this.#gather(lastPart)
      content = this.#gathered.subarray(0, this.#gatheredLength)
      // The frame keeps this memory until `reclaim`, so the next one needs its own.
      this.#lastGathered = this.#gathered
      this.#gathered = EMPTY_BYTES
    }
    this.#frameLength = 0
    this.#prefixLength = 0
    this.#gatheredLength = 0
    return content
  }
}

function takeSpare(length: number): Uint8Array | undefined {
  if (spare.length < length) return undefined
  const taken = spare
  spare = EMPTY_BYTES
  return taken
}

function checkLength(length: number): void {
  if (length === 0) throw badFrame('a frame must have a flag byte')
  if (length > FRAME_LENGTH_MAX) throw badFrame(`a frame must not exceed ${FRAME_LENGTH_MAX} bytes`)
}

function parseFrame(content: Uint8Array): Frame {
  const flag = content[0]!
  const payload = content.subarray(1)
  if ((flag & FLAG_TERMINAL) !== 0) return parseTerminal(payload)
  const reconnectAdvised = (flag & FLAG_RECONNECT_ADVISED) !== 0
  switch (flag & FLAG_COMPRESSION) {
    case 0:
      return { kind: 'message', compression: undefined, reconnectAdvised, payload }
    case FLAG_ZSTD:
      return { kind: 'message', compression: 'zstd', reconnectAdvised, payload }
    case FLAG_GZIP:
      return { kind: 'message', compression: 'gzip', reconnectAdvised, payload }
    default:
      throw badFrame('unknown compression')
  }
}

function parseTerminal(payload: Uint8Array): TerminalFrame {
  if (payload.length < STATUS_LENGTH) throw badFrame('a terminal frame must have a status')
  const body = textOf(payload.subarray(STATUS_LENGTH))
  if (body === undefined) throw badFrame('the body of a terminal frame must be UTF-8')
  return { kind: 'terminal', status: (payload[0]! << 8) | payload[1]!, body }
}

function badFrame(message: string): HeadwaterError {
  return new HeadwaterError('bad_frame', message)
}
