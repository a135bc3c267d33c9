import { EMPTY_BYTES, textOf, utf8 } from '../model/bytes.ts'
import { HeadwaterError } from '../model/errors.ts'
import type { StreamTail } from '../model/position.ts'
import type { MaybePromise } from '../runtime/maybe-promise.ts'
import type { ReadBatch } from '../storage/record-batch.ts'
import type { Compression } from './codecs.ts'
import { compress, decompress } from './compression.ts'
import { encodeHeartbeat, encodeReadBatch } from './protobuf.ts'

/** Frames of binary sessions (docs/protocol.md "Frames"), at both ends of the protocol. */

/** The largest length in the prefix of a frame: flag byte and payload (docs/protocol.md "Frames"). */
const FRAME_LENGTH_MAX = 2_097_152
/** The largest payload of a frame, compressed or not, in bytes. */
export const FRAME_PAYLOAD_MAX = FRAME_LENGTH_MAX - 1

export interface MessageFrame {
  readonly kind: 'message'
  readonly compression: Compression | undefined
  /** Whether the server is about to close: the client should finish, then reconnect. */
  readonly reconnectAdvised: boolean
  /** The message. May be a view of the received chunk. */
  readonly payload: Uint8Array
}

/** The last frame of a session that failed. */
interface TerminalFrame {
  readonly kind: 'terminal'
  readonly status: number
  /** The JSON text of the error's body. */
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

/** The first allocation for a frame that arrives in several chunks. It grows with the bytes that arrive. */
const GATHER_LENGTH_MIN = 16_384
/** How many times as long an allocation is as the bytes that have arrived. */
const GATHER_GROWTH = 4

/**
 * Splits the bytes of a session into frames. Holds at most one incomplete frame, in at most four times the
 * memory of the bytes that have arrived.
 */
export class FrameDecoder {
  /** The length in the prefix, as far as its bytes have arrived. */
  #frameLength = 0
  #prefixLength = 0
  /** The bytes of the frame (flag and payload) that have arrived. */
  #gathered: Uint8Array = EMPTY_BYTES
  #gatheredLength = 0
  #ended = false

  get heldBytes(): number {
    return this.#gathered.length
  }

  /** Whether a frame has begun and is not complete. */
  get isWithinFrame(): boolean {
    return this.#prefixLength > 0
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
      const room = Math.min(this.#frameLength, Math.max(GATHER_LENGTH_MIN, GATHER_GROWTH * length))
      const grown = new Uint8Array(room)
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
      this.#gathered = EMPTY_BYTES
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
  const compressed = flag & FLAG_COMPRESSION
  if (compressed === FLAG_COMPRESSION) throw badFrame('unknown compression')
  const compression = compressed === 0 ? undefined : compressed === FLAG_ZSTD ? 'zstd' : 'gzip'
  return { kind: 'message', compression, reconnectAdvised, payload }
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

/** Frames a message. Throws `RangeError` if the payload is larger than {@link FRAME_PAYLOAD_MAX}. */
export function encodeMessageFrame(
  payload: Uint8Array,
  options: {
    readonly compression?: Compression | undefined
    readonly reconnectAdvised?: boolean | undefined
  } = {},
): Uint8Array {
  const { compression, reconnectAdvised } = options
  const compressed = compression === undefined ? 0 : compression === 'zstd' ? FLAG_ZSTD : FLAG_GZIP
  const flag = compressed | (reconnectAdvised ? FLAG_RECONNECT_ADVISED : 0)
  const frame = frameHead(flag, payload.length, payload.length)
  frame.set(payload, PREFIX_LENGTH + 1)
  return frame
}

/** Frames an error: its HTTP status and the JSON text of its body (docs/protocol.md "Terminal frames"). */
export function encodeTerminalFrame(status: number, body: string): Uint8Array {
  const text = utf8(body)
  const length = STATUS_LENGTH + text.length
  const frame = frameHead(FLAG_TERMINAL, length, length)
  frame[PREFIX_LENGTH + 1] = status >> 8
  frame[PREFIX_LENGTH + 2] = status
  frame.set(text, PREFIX_LENGTH + 1 + STATUS_LENGTH)
  return frame
}

/** The beginning of the frame of a message, whose payload of this length follows. Throws `RangeError`. */
export function messageFrameHead(payloadLength: number): Uint8Array {
  return frameHead(0, payloadLength, 0)
}

/** A frame with room for the first `room` bytes of its payload. */
function frameHead(flag: number, payloadLength: number, room: number): Uint8Array {
  if (payloadLength > FRAME_PAYLOAD_MAX) {
    throw new RangeError(`a frame's payload must not exceed ${FRAME_PAYLOAD_MAX} bytes`)
  }
  const length = payloadLength + 1
  const frame = new Uint8Array(PREFIX_LENGTH + 1 + room)
  frame[0] = length >> 16
  frame[1] = length >> 8
  frame[2] = length
  frame[PREFIX_LENGTH] = flag
  return frame
}

/** Shorter messages are never compressed (docs/protocol.md "Compressed frames"). */
const COMPRESSION_BYTES_MIN = 1024

/**
 * The algorithm of the server's messages: zstd if `Accept-Encoding` contains it, else gzip, else none.
 * Weights do not count, not even 0, and `*` stands for nothing. Pages have no zstd, although their browser
 * says so.
 */
export function sessionCompressionOf(
  acceptEncoding: string | undefined,
  isOfPage = false,
): Compression | undefined {
  const names = (acceptEncoding ?? '').split(',').map((item) => item.split(';')[0]!.trim().toLowerCase())
  return names.includes('zstd') && !isOfPage ? 'zstd' : names.includes('gzip') ? 'gzip' : undefined
}

/**
 * Frames a protobuf message, compressed if the session has an algorithm and the message is long enough: at
 * once if it is not compressed. Throws `RangeError` if it is longer than a frame may be.
 */
export function frameMessage(
  message: Uint8Array,
  compression: Compression | undefined,
): MaybePromise<Uint8Array> {
  const isLong = compression !== undefined && message.length >= COMPRESSION_BYTES_MIN
  return isLong ? compressedFrame(message, compression) : encodeMessageFrame(message)
}

async function compressedFrame(message: Uint8Array, compression: Compression): Promise<Uint8Array> {
  try {
    return encodeMessageFrame(await compress(compression, message), { compression })
  } catch {
    // Compression is optional: a strict content security policy may prevent loading the codec.
    return encodeMessageFrame(message)
  }
}

/**
 * The protobuf message of a frame: at once if it is not compressed. Rejects with `bad_frame` if it is damaged
 * or decompresses to more than a frame may hold.
 */
export function messageOf(frame: MessageFrame): MaybePromise<Uint8Array> {
  if (frame.compression === undefined) return frame.payload
  return decompress(frame.compression, frame.payload, { bytesMax: FRAME_PAYLOAD_MAX, code: 'bad_frame' })
}

/**
 * The session frame of a batch, made once for each batch and algorithm: all followers of a stream send the
 * same bytes, which must not be written to.
 */
export function readBatchFrame(
  batch: ReadBatch,
  compression: Compression | undefined,
): MaybePromise<Uint8Array> {
  return batch.encoding(`frame ${compression}`, () => frameMessage(encodeReadBatch(batch), compression))
}

/** Copies a frame, or its parts, with the advice to reconnect. */
export function withReconnectAdvice(frame: Uint8Array | readonly Uint8Array[]): readonly Uint8Array[] {
  const [head, ...others] = frame instanceof Uint8Array ? [frame] : frame
  const advised = new Uint8Array(head!)
  advised[PREFIX_LENGTH]! |= FLAG_RECONNECT_ADVISED
  return [advised, ...others]
}

/** Batches from this size on are sent without being copied into a frame, in bytes. */
const UNCOPIED_BYTES_MIN = 65_536
/** Their parts are sent as they are if they have on average so many bytes. */
const PART_BYTES_MIN = 16_384

/**
 * The parts of the session frame of a large batch, which share memory with it and must not be written to.
 * Undefined if the batch is small: its frame is better made once and shared.
 */
export function largeBatchFrame(batch: ReadBatch): readonly Uint8Array[] | undefined {
  const bytes = batch.parts.reduce((sum, { length }) => sum + length, 0)
  if (bytes < UNCOPIED_BYTES_MIN) return undefined
  // Writing many short parts costs more than joining them.
  const parts = bytes / batch.parts.length < PART_BYTES_MIN ? [batch.data] : batch.parts
  if (batch.tail === undefined) return [messageFrameHead(bytes), ...parts]
  const end = encodeHeartbeat(batch.tail)
  return [messageFrameHead(bytes + end.length), ...parts, end]
}

/** The session frame of a heartbeat, which is too short to be compressed. */
export function heartbeatFrame(tail: StreamTail): Uint8Array {
  return encodeMessageFrame(encodeHeartbeat(tail))
}
