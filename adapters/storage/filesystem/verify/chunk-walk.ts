import type { StoredBlock } from '../../../../src/storage/contract.ts'
import { chunkFrameBytes, decodeChunk, decodeChunkFrame } from '../chunk.ts'
import { FRAME_HEADER_BYTES } from '../frame.ts'
import type { SegmentFile } from './segment-file.ts'

/** A chunk that is whole. */
export interface WalkedChunk {
  readonly offset: number
  readonly bytes: number
  /** Number of the log that it is of, by its own account. */
  readonly log: number
  readonly blocks: readonly StoredBlock[]
}

/** The chunk that begins at `offset`, found by nothing but its own account. Rejects with `RangeError` when there is none that is whole. */
export async function chunkHere(file: SegmentFile, offset: number, salt: number): Promise<WalkedChunk> {
  const frameBytes = chunkFrameBytes(await file.read(offset, FRAME_HEADER_BYTES))
  if (frameBytes > file.size - offset) throw new RangeError('a chunk is not whole')
  const { log, blocks } = decodeChunkFrame(await file.read(offset, frameBytes), salt)
  const bytes = blocks.reduce((sum, { dataBytes }) => sum + dataBytes, frameBytes)
  return { offset, bytes, log, blocks: decodeChunk(await file.read(offset, bytes), log, salt) }
}
