import { utf8 } from '../model/bytes.ts'
import type { Compression } from './codec.ts'
import {
  FLAG_GZIP,
  FLAG_RECONNECT_ADVISED,
  FLAG_TERMINAL,
  FLAG_ZSTD,
  FRAME_PAYLOAD_MAX,
  PREFIX_LENGTH,
  STATUS_LENGTH,
} from './frame.ts'

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
