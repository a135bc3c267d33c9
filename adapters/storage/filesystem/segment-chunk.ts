import type { StoredBlock } from '../../../src/storage/contract.ts'
import { decodeAppendFrame } from './append-frame.ts'
import { decodeChunk } from './chunk.ts'
import { frameEnd } from './frame.ts'
import type { SegmentFacts } from './segment.ts'

/**
 * The blocks of a chunk, with views of its data: in an adopted journal a chunk is the frame of an append. Throws `RangeError` when it is something else, of
 * another log, or not whole.
 */
export function decodeSegmentChunk(home: SegmentFacts, bytes: Buffer, log: number): StoredBlock[] {
  if (home.journal === 0) return decodeChunk(bytes, log, home.salt)
  const frame = decodeAppendFrame(bytes, home.salt)
  if (frame.log !== log) throw new RangeError('a chunk is one of another log')
  return [frame.block]
}

/** How long the chunk is that was decoded to these blocks. */
export function segmentChunkBytes(home: SegmentFacts, bytes: Buffer, blocks: readonly StoredBlock[]): number {
  const frameBytes = frameEnd(bytes, 0)
  return home.journal === 0 ? blocks.reduce((sum, { data }) => sum + data.length, frameBytes) : frameBytes
}
