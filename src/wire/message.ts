import { compress, decompress } from './compression.ts'
import { type Compression, encodeMessageFrame, FRAME_PAYLOAD_MAX, type MessageFrame } from './frame.ts'

/** Messages shorter than this are never compressed, others always when the session has an algorithm (wire-behaviour.md 6.4). */
const COMPRESSION_BYTES_MIN = 1024

/**
 * The algorithm for the server's messages: zstd if any `Accept-Encoding` names it, else gzip, else none. Weights do not count,
 * not even 0; `*` names nothing.
 */
export function sessionCompressionOf(acceptEncoding: string | null): Compression | undefined {
  const names = (acceptEncoding ?? '').split(',').map((item) => item.split(';')[0]!.trim().toLowerCase())
  return names.includes('zstd') ? 'zstd' : names.includes('gzip') ? 'gzip' : undefined
}

/** Frames a protobuf message, compressed if the session has an algorithm and the message is long enough. */
export async function frameMessage(
  message: Uint8Array,
  compression: Compression | undefined,
): Promise<Uint8Array> {
  if (compression === undefined || message.length < COMPRESSION_BYTES_MIN) return encodeMessageFrame(message)
  try {
    return encodeMessageFrame(await compress(compression, message), { compression })
  } catch {
    // A courtesy: where the codec cannot be loaded, as under a strict content security policy, readers get their records all the same.
    return encodeMessageFrame(message)
  }
}

/** The protobuf message of a frame. Rejects with `bad_frame` when it does not decompress, or to more than a frame may hold. */
export async function messageOf(frame: MessageFrame): Promise<Uint8Array> {
  if (frame.compression === undefined) return frame.payload
  return decompress(frame.compression, frame.payload, { bytesMax: FRAME_PAYLOAD_MAX, code: 'bad_frame' })
}
