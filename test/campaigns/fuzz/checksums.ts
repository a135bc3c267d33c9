import { crc32 } from 'node:zlib'
import { ByteReader } from '../../../adapters/storage/filesystem/files/bytes.ts'
import { FILE_HEADER_BYTES } from '../../../adapters/storage/filesystem/files/file-header.ts'
import { FRAME_HEADER_BYTES, frameEnd, payloadEnd } from '../../../adapters/storage/filesystem/files/frame.ts'
import { GROUP_HEADER_BYTES } from '../../../adapters/storage/filesystem/journal/group.ts'

/**
 * Writes correct checksums into copies of files: otherwise every mutation would be rejected by a checksum.
 */

/** Consecutive frames with their data. Lengths are trusted as far as there are bytes. */
export function withFrames(bytes: Uint8Array, salt: number, start = 0, end = bytes.length): Buffer {
  const copy = Buffer.from(bytes)
  for (let at = start; at + FRAME_HEADER_BYTES <= end; ) {
    const payload = payloadEnd(copy, at)
    const next = frameEnd(copy, at)
    if (payload > end) break
    if (next > payload && next <= end) writePageChecksums(copy, salt, at, next)
    copy.writeUInt32LE(crc32(copy.subarray(at + 4, payload), salt), at)
    at = next
  }
  return copy
}

/** As far as the page table is well-formed. */
function writePageChecksums(copy: Buffer, salt: number, start: number, end: number): void {
  let offset = payloadEnd(copy, start)
  const reader = new ByteReader(copy, start + FRAME_HEADER_BYTES, offset)
  try {
    for (let left = reader.varint(); left > 0; left--) {
      const at = reader.offset
      reader.u32()
      const bytes = left === 1 ? end - offset : reader.varint()
      copy.writeUInt32LE(crc32(copy.subarray(offset, offset + bytes), salt), at)
      offset += bytes
      if (left > 1) for (let field = 0; field < 2; field++) reader.varint()
    }
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
  }
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
