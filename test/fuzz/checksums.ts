import { crc32 } from 'node:zlib'
import { FILE_HEADER_BYTES } from '../../adapters/storage/filesystem/file-header.ts'
import { FRAME_HEADER_BYTES } from '../../adapters/storage/filesystem/frame.ts'
import { GROUP_HEADER_BYTES } from '../../adapters/storage/filesystem/group.ts'

/** Writes the checksums that the bytes of files ought to have, into copies: without them no mutation would come far. */

/** Frames that lie behind each other. Lengths are believed as far as there are bytes. */
export function withFrames(bytes: Uint8Array, salt: number, start = 0, end = bytes.length): Buffer {
  const copy = Buffer.from(bytes)
  for (let at = start; at + FRAME_HEADER_BYTES <= end; ) {
    const frameEnd = at + FRAME_HEADER_BYTES + copy.readUInt32LE(at + 4)
    if (frameEnd > end) break
    copy.writeUInt32LE(crc32(copy.subarray(at + 4, frameEnd), salt), at)
    at = frameEnd
  }
  return copy
}

/** A group with its frames. */
export function withGroup(bytes: Uint8Array, salt: number, start = 0): Buffer {
  if (start + GROUP_HEADER_BYTES > bytes.length) return Buffer.from(bytes)
  const framesBytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).readUInt32LE(start + 4)
  const end = Math.min(start + GROUP_HEADER_BYTES + framesBytes, bytes.length)
  const copy = withFrames(bytes, salt, start + GROUP_HEADER_BYTES, end)
  copy.writeUInt32LE(crc32(copy.subarray(start, start + 20), salt), start + 20)
  return copy
}

export function withFileHeader(bytes: Uint8Array): Buffer {
  const copy = Buffer.from(bytes)
  if (copy.length >= FILE_HEADER_BYTES) copy.writeUInt32LE(crc32(copy.subarray(0, 28)), 28)
  return copy
}

/** A chunk that begins at `start`: the checksum of its data, which lies behind the number of its log, and that of its frame. */
export function withChunkData(bytes: Uint8Array, salt: number, start: number, dataBytes: number): Buffer {
  const copy = Buffer.from(bytes)
  const frameEnd = start + FRAME_HEADER_BYTES + copy.readUInt32LE(start + 4)
  let at = start + FRAME_HEADER_BYTES
  while (at < frameEnd && copy[at]! >= 0x80) at++
  if (at + 5 > Math.min(frameEnd, copy.length)) return copy
  copy.writeUInt32LE(crc32(copy.subarray(frameEnd, frameEnd + dataBytes), salt), at + 1)
  return withFrames(copy, salt, start, frameEnd)
}
