import { concatBytes } from '../model/bytes.ts'
import { BATCH_ENCODED_BYTES_MAX, BATCH_METERED_BYTES_MAX, BATCH_RECORDS_MAX } from '../model/limits.ts'
import type { AppendRequest, StoredBlock } from './contract.ts'
import { blockOf, type RecordSpan, spansOf } from './cut-block.ts'

/** The length of the data of an append, in bytes. */
export function appendedBytes({ blocks }: AppendRequest): number {
  return blocks.reduce((sum, { data }) => sum + data.length, 0)
}

/** Groups consecutive blocks of a log. Those of a group may be merged into one. */
export function mergeableBlocks<Block extends StoredBlock>(blocks: readonly Block[]): readonly Block[][] {
  const groups: Block[][] = []
  let size = { records: 0, meteredBytes: 0, bytes: 0 }
  for (const block of blocks) {
    const records = block.endSeqNum - block.firstSeqNum
    const joined = {
      records: size.records + records,
      meteredBytes: size.meteredBytes + block.meteredBytes,
      bytes: size.bytes + block.data.length,
    }
    const current = groups.at(-1) ?? []
    const fits =
      current[0]?.expiresAt === block.expiresAt &&
      joined.records <= BATCH_RECORDS_MAX &&
      joined.meteredBytes <= BATCH_METERED_BYTES_MAX &&
      joined.bytes <= BATCH_ENCODED_BYTES_MAX
    if (fits) current.push(block)
    else groups.push([block])
    size = fits ? joined : { records, meteredBytes: block.meteredBytes, bytes: block.data.length }
  }
  return groups
}

/**
 * Merges consecutive blocks with the same `expiresAt`, at least one. Returns a single block as it is.
 *
 * @param join Concatenates their data; copies it by default.
 */
export function mergedBlock(
  blocks: readonly StoredBlock[],
  join: (parts: readonly Uint8Array[]) => Uint8Array = concatBytes,
): StoredBlock {
  const first = blocks[0]!
  if (blocks.length === 1) return first
  const { endSeqNum, lastTimestamp } = blocks.at(-1)!
  return {
    firstSeqNum: first.firstSeqNum,
    endSeqNum,
    firstTimestamp: first.firstTimestamp,
    lastTimestamp,
    meteredBytes: blocks.reduce((sum, { meteredBytes }) => sum + meteredBytes, 0),
    expiresAt: first.expiresAt,
    data: join(blocks.map(({ data }) => data)),
  }
}

/**
 * Cuts a block into consecutive blocks with at most `bytesMax` bytes of data each, unless a single record is
 * larger: for storages that keep a large value in pieces and would have to join them. The data are views.
 * Returns the block itself if it cannot be cut, because it is encrypted or does not match its metadata.
 */
export function splitBlock(block: StoredBlock, bytesMax: number): StoredBlock[] {
  if (block.data.length <= bytesMax) return [block]
  const pieces: StoredBlock[] = []
  let spans: RecordSpan[] = []
  let meteredBytes = 0
  try {
    for (const span of spansOf(block)) {
      if (spans.length > 0 && span.end - spans[0]!.start > bytesMax) {
        pieces.push(blockOf(block.data, spans, block.expiresAt))
        spans = []
      }
      spans.push(span)
      meteredBytes += span.meteredBytes
    }
  } catch {
    return [block]
  }
  const last = blockOf(block.data, spans, block.expiresAt)
  const agrees =
    meteredBytes === block.meteredBytes &&
    (pieces[0] ?? last).firstTimestamp === block.firstTimestamp &&
    last.lastTimestamp === block.lastTimestamp
  return agrees ? [...pieces, last] : [block]
}
