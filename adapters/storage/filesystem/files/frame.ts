import { crc32 } from 'node:zlib'
import type { ByteWriter } from './bytes.ts'

/** Checksum, length of the payload, length of the data that follow it. */
export const FRAME_HEADER_BYTES = 12

/** Reserves the header of a frame. Returns the value that {@link endFrame} needs. */
export function beginFrame(writer: ByteWriter): number {
  const start = writer.length
  writer.skip(FRAME_HEADER_BYTES)
  return start
}

/** Completes the header after the payload was written. The data, which have their own checksums, follow. */
export function endFrame(writer: ByteWriter, start: number, salt: number, dataBytes = 0): void {
  const frame = writer.bytes.subarray(start)
  frame.writeUInt32LE(frame.length - FRAME_HEADER_BYTES, 4)
  frame.writeUInt32LE(dataBytes, 8)
  frame.writeUInt32LE(crc32(frame.subarray(4), salt), 0)
}

/**
 * Returns the end of the payload of the frame at `offset`, by its header; infinite if the header is
 * truncated.
 */
export function payloadEnd(bytes: Buffer, offset: number): number {
  if (offset + FRAME_HEADER_BYTES > bytes.length) return Number.POSITIVE_INFINITY
  return offset + FRAME_HEADER_BYTES + bytes.readUInt32LE(offset + 4)
}

/**
 * Returns the end of the data of the frame at `offset`, by its header; infinite if the header is truncated.
 */
export function frameEnd(bytes: Buffer, offset: number): number {
  const end = payloadEnd(bytes, offset)
  return end === Number.POSITIVE_INFINITY ? end : end + bytes.readUInt32LE(offset + 8)
}

/**
 * The payload of the frame at `offset`, as a view; undefined if the payload is incomplete or its checksum
 * does not match.
 */
export function framePayload(bytes: Buffer, offset: number, salt: number): Buffer | undefined {
  const end = payloadEnd(bytes, offset)
  if (end > bytes.length) return undefined
  if (crc32(bytes.subarray(offset + 4, end), salt) !== bytes.readUInt32LE(offset)) return undefined
  return bytes.subarray(offset + FRAME_HEADER_BYTES, end)
}
