import { crc32 } from 'node:zlib'
import type { ByteWriter } from './bytes.ts'

export const FRAME_HEADER_BYTES = 8

/** Begins a frame; {@link endFrame} is given what this returns. */
export function beginFrame(writer: ByteWriter): number {
  const start = writer.length
  writer.skip(FRAME_HEADER_BYTES)
  return start
}

export function endFrame(writer: ByteWriter, start: number, salt: number): void {
  const frame = writer.bytes.subarray(start)
  frame.writeUInt32LE(frame.length - FRAME_HEADER_BYTES, 4)
  frame.writeUInt32LE(crc32(frame.subarray(4), salt), 0)
}

/** Where the frame that begins at `offset` ends by its own account; infinite when not even its header is there. */
export function frameEnd(bytes: Buffer, offset: number): number {
  if (offset + FRAME_HEADER_BYTES > bytes.length) return Number.POSITIVE_INFINITY
  return offset + FRAME_HEADER_BYTES + bytes.readUInt32LE(offset + 4)
}

/** The payload of the frame that begins at `offset`, as a view, or undefined when it is not whole. */
export function framePayload(bytes: Buffer, offset: number, salt: number): Buffer | undefined {
  const end = frameEnd(bytes, offset)
  if (end > bytes.length) return undefined
  if (crc32(bytes.subarray(offset + 4, end), salt) !== bytes.readUInt32LE(offset)) return undefined
  return bytes.subarray(offset + FRAME_HEADER_BYTES, end)
}
