import { utf8 } from '../model/bytes.ts'
import type { StreamTail } from '../model/position.ts'
import { isPromise, type MaybePromise } from '../runtime/maybe-promise.ts'
import type { ReadBatch } from '../storage/record-batch.ts'
import type { Compression } from './codec.ts'
import { compress, decompress } from './compression.ts'
import {
  FLAG_GZIP,
  FLAG_RECONNECT_ADVISED,
  FLAG_TERMINAL,
  FLAG_ZSTD,
  FRAME_PAYLOAD_MAX,
  type MessageFrame,
  PREFIX_LENGTH,
  STATUS_LENGTH,
} from './frame.ts'
import { encodeHeartbeat, encodeReadBatch } from './protobuf.ts'

/**
 * Frames a message (docs/protocol.md "Frames"). Throws `RangeError` if the payload is larger than {@link
 * FRAME_PAYLOAD_MAX}.
 */
export function encodeMessageFrame(
  payload: Uint8Array,
  options: {
    readonly compression?: Compression | undefined
    readonly reconnectAdvised?: boolean | undefined
  } = {},
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

/** Frames an error: its HTTP status and the JSON text of its body (docs/protocol.md "Terminal frames"). */
export function encodeTerminalFrame(status: number, body: string): Uint8Array {
  const text = utf8(body)
  const frame = emptyFrame(FLAG_TERMINAL, STATUS_LENGTH + text.length)
  frame[PREFIX_LENGTH + 1] = status >> 8
  frame[PREFIX_LENGTH + 2] = status
  frame.set(text, PREFIX_LENGTH + 1 + STATUS_LENGTH)
  return frame
}

/** The beginning of the frame of a message, whose payload of this length follows. Throws `RangeError`. */
export function messageFrameHead(payloadLength: number): Uint8Array {
  return frameHead(0, payloadLength, 0)
}

function emptyFrame(flag: number, payloadLength: number): Uint8Array {
  return frameHead(flag, payloadLength, payloadLength)
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

/**
 * Shorter messages are never compressed; others are, if the session has an algorithm (docs/protocol.md
 * "Compressed frames").
 */
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

const frames = new WeakMap<ReadBatch, Map<Compression | undefined, MaybePromise<Uint8Array>>>()

/**
 * The session frame of a batch, made once for each batch and algorithm: all followers of a stream send the
 * same bytes, which must not be written to.
 */
export function readBatchFrame(
  batch: ReadBatch,
  compression: Compression | undefined,
): MaybePromise<Uint8Array> {
  let framesOfBatch = frames.get(batch)
  if (framesOfBatch === undefined) {
    framesOfBatch = new Map()
    frames.set(batch, framesOfBatch)
  }
  let frame = framesOfBatch.get(compression)
  if (frame === undefined) {
    frame = frameMessage(encodeReadBatch(batch), compression)
    framesOfBatch.set(compression, frame)
    // The next reader retries after a failure.
    if (isPromise(frame)) frame.catch(() => framesOfBatch.delete(compression))
  }
  return frame
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

/**
 * The parts of the session frame of a large batch, which share memory with it and must not be written to.
 * Undefined if the batch is small: its frame is better made once and shared.
 */
export function largeBatchFrame(batch: ReadBatch): readonly Uint8Array[] | undefined {
  const { data, tail } = batch
  if (data.length < UNCOPIED_BYTES_MIN) return undefined
  if (tail === undefined) return [messageFrameHead(data.length), data]
  const end = encodeHeartbeat(tail)
  return [messageFrameHead(data.length + end.length), data, end]
}

/** The session frame of a heartbeat, which is too short to be compressed: made at once. */
export function heartbeatFrame(tail: StreamTail): MaybePromise<Uint8Array> {
  return frameMessage(encodeHeartbeat(tail), undefined)
}
