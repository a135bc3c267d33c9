import { textOf, utf8 } from '../model/bytes.ts'
import { HeadwaterError } from '../model/errors.ts'

/** Largest length that a frame's prefix may announce: the flag byte and the payload (wire-behaviour.md 6.1). */
const FRAME_LENGTH_MAX = 2_097_152
/** Largest payload of a frame, compressed or not. */
export const FRAME_PAYLOAD_MAX = FRAME_LENGTH_MAX - 1

export type Compression = 'zstd' | 'gzip'

/** A frame that carries one protobuf message. */
export interface MessageFrame {
  readonly kind: 'message'
  /** How the payload is compressed; undefined is not at all. */
  readonly compression: Compression | undefined
  /** The server is about to go away: finish, then reconnect. */
  readonly reconnectAdvised: boolean
  /** May be a view of the chunk that it came in. */
  readonly payload: Uint8Array
}

/** The last frame of a session that failed. */
interface TerminalFrame {
  readonly kind: 'terminal'
  /** HTTP status that the error would have had. */
  readonly status: number
  /** JSON text of the body that it would have had. */
  readonly body: string
}

export type Frame = MessageFrame | TerminalFrame

const PREFIX_LENGTH = 3
const FLAG_TERMINAL = 0x80
const FLAG_COMPRESSION = 0x60
const FLAG_ZSTD = 0x20
const FLAG_GZIP = 0x40
const FLAG_RECONNECT_ADVISED = 0x10
const STATUS_LENGTH = 2

/** Frames a message (wire-behaviour.md 6.1 and 6.2). Throws `RangeError` when the payload is larger than {@link FRAME_PAYLOAD_MAX}. */
export function encodeMessageFrame(
  payload: Uint8Array,
  options: { readonly compression?: Compression | undefined; readonly reconnectAdvised?: boolean } = {},
): Uint8Array {
  const compression =
    options.compression === 'zstd' ? FLAG_ZSTD : options.compression === 'gzip' ? FLAG_GZIP : 0
  const frame = emptyFrame(
    compression | (options.reconnectAdvised ? FLAG_RECONNECT_ADVISED : 0),
    payload.length,
  )
  frame.set(payload, PREFIX_LENGTH + 1)
  return frame
}

/** Frames an error: its HTTP status and the JSON text of its body (wire-behaviour.md 6.3). */
export function encodeTerminalFrame(status: number, body: string): Uint8Array {
  const text = utf8(body)
  const frame = emptyFrame(FLAG_TERMINAL, STATUS_LENGTH + text.length)
  frame[PREFIX_LENGTH + 1] = status >> 8
  frame[PREFIX_LENGTH + 2] = status
  frame.set(text, PREFIX_LENGTH + 1 + STATUS_LENGTH)
  return frame
}

function emptyFrame(flag: number, payloadLength: number): Uint8Array {
  if (payloadLength > FRAME_PAYLOAD_MAX) {
    throw new RangeError(`a frame's payload must not exceed ${FRAME_PAYLOAD_MAX} bytes`)
  }
  const length = payloadLength + 1
  const frame = new Uint8Array(PREFIX_LENGTH + length)
  frame[0] = length >> 16
  frame[1] = length >> 8
  frame[2] = length
  frame[PREFIX_LENGTH] = flag
  return frame
}

/** First piece of memory for a frame that comes in several chunks; grown as bytes really arrive. */
const GATHER_LENGTH_MIN = 16_384

/**
 * Takes a session's bytes in whatever chunks they arrive, and yields its frames. Holds no more than one incomplete frame, and
 * memory for no more than twice of what has arrived of it.
 */
export class FrameDecoder {
  /** The prefix, and how many of its bytes have arrived. */
  #frameLength = 0
  #prefixLength = 0
  /** What has arrived of the frame (flag and payload) after the prefix. */
  #gathered: Uint8Array = new Uint8Array(0)
  #gatheredLength = 0
  #ended = false

  /** Memory for the frame that is incomplete. */
  get heldBytes(): number {
    return this.#gathered.length
  }

  /** To be called when the bytes have ended. Throws `bad_frame` when they ended within a frame. */
  end(): void {
    if (this.#prefixLength > 0) throw badFrame('the last frame is cut short')
  }

  /**
   * The frames that the chunk completes. Run it to its end before the next chunk. The payload of a frame that lies wholly in
   * the chunk is a view of it. Throws `bad_frame`, as soon as the prefix is read when that is what is wrong; the decoder is of no
   * further use then.
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
      const grown = new Uint8Array(Math.min(this.#frameLength, Math.max(GATHER_LENGTH_MIN, 2 * length)))
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
      // The frame keeps the memory: the next one must not be gathered into it.
      this.#gathered = new Uint8Array(0)
    }
    this.#frameLength = 0
    this.#prefixLength = 0
    this.#gatheredLength = 0
    return content
  }
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
