import type { MaybePromise } from '../runtime/maybe-promise.ts'
import type { Compression } from './codec.ts'
import { compress, decompress } from './compression.ts'
import { encodeMessageFrame } from './encode-frame.ts'
import { FRAME_PAYLOAD_MAX, type MessageFrame } from './frame.ts'

/**
 * Shorter messages are never compressed; others are, if the session has an algorithm (docs/protocol.md
 * "Compressed frames").
 */
const COMPRESSION_BYTES_MIN = 1024

/**
 * The algorithm of the server's messages: zstd if `Accept-Encoding` contains it, else gzip, else none.
 * Weights do not count, not even 0, and `*` stands for nothing.
 */
export function sessionCompressionOf(acceptEncoding: string | null): Compression | undefined {
  const names = (acceptEncoding ?? '').split(',').map((item) => item.split(';')[0]!.trim().toLowerCase())
  return names.includes('zstd') ? 'zstd' : names.includes('gzip') ? 'gzip' : undefined
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
