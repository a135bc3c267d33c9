import { BATCH_RECORDS_MAX } from '../../../src/model/limits.ts'
import type { StoredBlock } from '../../../src/storage/contract.ts'
import { CHUNK_BYTES } from './chunk.ts'

/**
 * Makes larger blocks of small ones that lie and expire together, up to the size of a chunk: larger ones would have to be read whole to find one record.
 * The concatenation of blocks is the block of their records (`src/storage/block-codec.ts`).
 */
export function* mergeNeighbours(blocks: Iterable<StoredBlock>): Generator<StoredBlock, void, undefined> {
  let parts: StoredBlock[] = []
  let bytes = 0
  for (const block of blocks) {
    const first = parts[0]
    const last = parts.at(-1)
    const isNeighbour =
      first !== undefined &&
      last !== undefined &&
      last.endSeqNum === block.firstSeqNum &&
      last.expiresAt === block.expiresAt &&
      block.endSeqNum - first.firstSeqNum <= BATCH_RECORDS_MAX &&
      bytes + Math.max(block.data.length, block.meteredBytes) <= CHUNK_BYTES
    if (!isNeighbour && last !== undefined) {
      yield united(parts)
      parts = []
      bytes = 0
    }
    parts.push(block)
    bytes += Math.max(block.data.length, block.meteredBytes)
  }
  if (parts.length > 0) yield united(parts)
}

function united(parts: readonly StoredBlock[]): StoredBlock {
  const first = parts[0]!
  if (parts.length === 1) return first
  const last = parts.at(-1)!
  return {
    ...first,
    endSeqNum: last.endSeqNum,
    lastTimestamp: last.lastTimestamp,
    meteredBytes: parts.reduce((sum, { meteredBytes }) => sum + meteredBytes, 0),
    data: Buffer.concat(parts.map(({ data }) => data)),
  }
}
