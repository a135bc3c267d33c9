import { crc32 } from 'node:zlib'
import { ByteWriter } from '../files/bytes.ts'
import { beginFrame, type DataFrame, endFrame, frameEnd, readFrame, writePageTable } from '../files/frame.ts'
import { appendedBlock, type Change, writeChange } from '../state/change.ts'

export const GROUP_HEADER_BYTES = 24
/** Pending calls are written together up to this size; a single call may be larger. */
export const GROUP_BYTES_MAX = 8 * 1_048_576
/** Limits what a damaged length can make an opening read. */
const FRAME_BYTES_MAX = 64 * 1_048_576

const BUFFER_BYTES = 256 * 1024
const MAGIC = 0x50_55_52_47
const ALIGNMENT = 8

/** The place of a frame in its group. */
interface GroupPlace {
  readonly offset: number
  readonly bytes: number
}

/** Frames that become durable together. One buffer is reused for all groups. */
export class GroupWriter {
  #writer = new ByteWriter(BUFFER_BYTES)
  #salt = 0
  #frames = 0

  begin(salt: number): void {
    this.#salt = salt
    this.#frames = 0
    // Releases the memory that a large call needed.
    if (this.#writer.length > GROUP_BYTES_MAX) this.#writer = new ByteWriter(BUFFER_BYTES)
    this.#writer.truncate(0)
    this.#writer.skip(GROUP_HEADER_BYTES)
  }

  get isEmpty(): boolean {
    return this.#frames === 0
  }

  /** Adds a frame. Leaves the group unchanged if it throws. */
  add(changes: readonly Change[]): GroupPlace {
    const writer = this.#writer
    const offset = beginFrame(writer)
    try {
      const block = appendedBlock(changes)
      const dataBytes = block?.data.length ?? 0
      if (block !== undefined && dataBytes > 0) writePageTable(writer, [block], this.#salt)
      for (const change of changes) writeChange(writer, change)
      const bytes = writer.length + dataBytes - offset
      if (bytes > FRAME_BYTES_MAX) {
        throw new RangeError(`commit has ${bytes} bytes; the limit is ${FRAME_BYTES_MAX}`)
      }
      endFrame(writer, offset, this.#salt, dataBytes)
      if (block !== undefined) writer.raw(block.data)
      this.#frames++
      return { offset, bytes }
    } catch (error) {
      writer.truncate(offset)
      throw error
    }
  }

  /** The complete group: a view, valid until the next {@link begin}. */
  end(sequence: number): Buffer {
    const framesBytes = this.#writer.length - GROUP_HEADER_BYTES
    for (let i = padding(framesBytes); i > 0; i--) this.#writer.byte(0)
    const { bytes } = this.#writer
    bytes.writeUInt32LE(MAGIC, 0)
    bytes.writeUInt32LE(framesBytes, 4)
    bytes.writeBigUInt64LE(BigInt(sequence), 8)
    bytes.writeUInt32LE(this.#frames, 16)
    bytes.writeUInt32LE(crc32(bytes.subarray(0, 20), this.#salt), 20)
    return bytes
  }
}

export interface GroupHeader {
  readonly sequence: number
  readonly framesBytes: number
  readonly frames: number
  /** Total length with header and padding. */
  readonly bytes: number
}

/** Returns undefined unless the header of a group begins at `offset`. */
export function groupHeaderAt(bytes: Buffer, offset: number, salt: number): GroupHeader | undefined {
  if (offset + GROUP_HEADER_BYTES > bytes.length || bytes.readUInt32LE(offset) !== MAGIC) return undefined
  const crc = bytes.readUInt32LE(offset + 20)
  if (crc32(bytes.subarray(offset, offset + 20), salt) !== crc) return undefined
  const framesBytes = bytes.readUInt32LE(offset + 4)
  const sequence = Number(bytes.readBigUInt64LE(offset + 8))
  if (!Number.isSafeInteger(sequence)) return undefined
  return {
    sequence,
    framesBytes,
    frames: bytes.readUInt32LE(offset + 16),
    bytes: GROUP_HEADER_BYTES + framesBytes + padding(framesBytes),
  }
}

export interface GroupFrame extends GroupPlace, DataFrame {}

/** The frames of a complete group; undefined if one of them is damaged. */
export function groupFrames(group: Buffer, header: GroupHeader, salt: number): GroupFrame[] | undefined {
  const frames: GroupFrame[] = []
  const bytes = group.subarray(0, GROUP_HEADER_BYTES + header.framesBytes)
  try {
    for (let offset = GROUP_HEADER_BYTES; offset < bytes.length; ) {
      const end = frameEnd(bytes, offset)
      // Not spread: an opening reads hundreds of thousands.
      const { fields, pages, dataBytes, data } = readFrame(bytes, offset, salt)
      frames.push({ fields, pages, dataBytes, data, offset, bytes: end - offset })
      offset = end
    }
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
  return frames.length === header.frames ? frames : undefined
}

function padding(framesBytes: number): number {
  return (ALIGNMENT - ((GROUP_HEADER_BYTES + framesBytes) % ALIGNMENT)) % ALIGNMENT
}
