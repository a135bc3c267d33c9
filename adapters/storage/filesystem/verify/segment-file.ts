import type { StoredBlock } from '../../../../src/storage/contract.ts'
import { readFrameHead } from '../files/data-frame.ts'
import { corrupt, mapFileErrors } from '../files/errors.ts'
import type { File } from '../files/files.ts'
import { FRAME_HEADER_BYTES, frameEnd } from '../files/frame.ts'
import { decodeChunk, readChunkFields } from '../segment/chunk.ts'

/** Far more than a chunk or an index has: limits the memory that a damaged length can take. */
const PIECE_BYTES_MAX = 64 * 1_048_576

/** A segment that is open for reading. */
export class SegmentFile {
  readonly name: string
  readonly size: number
  readonly #file: File

  constructor(name: string, file: File, size: number) {
    this.name = name
    this.#file = file
    this.size = size
  }

  /**
   * Rejects with `StorageFailure` if the file is shorter, and with `RangeError` if the length is impossible.
   */
  async read(offset: number, length: number): Promise<Buffer> {
    if (length > PIECE_BYTES_MAX) throw new RangeError(`a length of ${length} bytes is impossible`)
    if (offset + length > this.size) throw corrupt(this.name, this.size, 'truncated')
    const bytes = Buffer.allocUnsafeSlow(length)
    const filled = await mapFileErrors(this.#file.read(bytes, offset))
    if (filled < length) throw corrupt(this.name, offset + filled, 'truncated')
    return bytes
  }
}

/** A complete chunk. */
export interface WalkedChunk {
  readonly offset: number
  readonly bytes: number
  /** Number of its log, by the chunk itself. */
  readonly log: number
  readonly blocks: readonly StoredBlock[]
}

/** Reads the chunk at `offset` without an index. Rejects with `RangeError` if there is no complete chunk. */
export async function readChunkAt(file: SegmentFile, offset: number, salt: number): Promise<WalkedChunk> {
  const bytes = frameEnd(await file.read(offset, FRAME_HEADER_BYTES), 0)
  if (bytes > file.size - offset) throw new RangeError('a chunk is damaged')
  const chunk = await file.read(offset, bytes)
  const { log } = readChunkFields(readFrameHead(chunk, 0, salt).fields)
  return { offset, bytes, log, blocks: decodeChunk(chunk, log, salt) }
}
