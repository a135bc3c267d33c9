import { crc32 } from 'node:zlib'
import { ByteWriter } from './bytes.ts'
import { writeChange } from './change-codec.ts'
import type { Change } from './changes.ts'
import { beginFrame, endFrame, framePayload } from './frame.ts'

export const GROUP_HEADER_BYTES = 24
/** What waits is written together up to here; a single call may have more. */
export const GROUP_BYTES_MAX = 8 * 1_048_576
/** The largest frame: a bound for what a damaged length can make an opening read. */
const FRAME_BYTES_MAX = 64 * 1_048_576

const BUFFER_BYTES = 256 * 1024
const MAGIC = 0x50_55_52_47
const ALIGNMENT = 8

/** Where a frame lies in its group. */
export interface GroupPlace {
  readonly offset: number
  readonly bytes: number
}

/** Frames that become durable together. Made again and again in one buffer. */
export class GroupWriter {
  #writer = new ByteWriter(BUFFER_BYTES)
  #salt = 0
  #frames = 0

  begin(salt: number): void {
    this.#salt = salt
    this.#frames = 0
    // What one large call needed is not kept for all that come.
    if (this.#writer.length > GROUP_BYTES_MAX) this.#writer = new ByteWriter(BUFFER_BYTES)
    this.#writer.truncate(0)
    this.#writer.skip(GROUP_HEADER_BYTES)
  }

  get isEmpty(): boolean {
    return this.#frames === 0
  }

  get length(): number {
    return this.#writer.length
  }

  /** Adds a frame. Leaves nothing when it throws. */
  add(changes: readonly Change[]): GroupPlace {
    return this.#addFrame(() => {
      for (const change of changes) writeChange(this.#writer, change)
    })
  }

  /** Adds a frame with the payload of another. */
  addCopy(payload: Uint8Array): GroupPlace {
    return this.#addFrame(() => this.#writer.raw(payload))
  }

  #addFrame(writePayload: () => void): GroupPlace {
    const offset = beginFrame(this.#writer)
    try {
      writePayload()
      const bytes = this.#writer.length - offset
      if (bytes > FRAME_BYTES_MAX) {
        throw new RangeError(
          `a commit of ${bytes} bytes is more than the ${FRAME_BYTES_MAX} that can be stored`,
        )
      }
      endFrame(this.#writer, offset, this.#salt)
      this.#frames++
      return { offset, bytes }
    } catch (error) {
      this.#writer.truncate(offset)
      throw error
    }
  }

  /** The group: a view, good until the next begins. */
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
  /** With header and padding. */
  readonly bytes: number
}

/** Undefined when no header of a group begins at `offset`. */
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

export interface GroupFrame extends GroupPlace {
  readonly payload: Buffer
}

/** The frames of a group that is read whole, or undefined when one of them is not. */
export function groupFrames(group: Buffer, header: GroupHeader, salt: number): GroupFrame[] | undefined {
  const frames: GroupFrame[] = []
  const end = GROUP_HEADER_BYTES + header.framesBytes
  let offset = GROUP_HEADER_BYTES
  while (offset < end) {
    const payload = framePayload(group.subarray(0, end), offset, salt)
    if (payload === undefined) return undefined
    const bytes = payload.byteOffset + payload.length - group.byteOffset - offset
    frames.push({ payload, offset, bytes })
    offset += bytes
  }
  return frames.length === header.frames ? frames : undefined
}

function padding(framesBytes: number): number {
  return (ALIGNMENT - ((GROUP_HEADER_BYTES + framesBytes) % ALIGNMENT)) % ALIGNMENT
}
