import type { StoredBlock } from './contract.ts'
import { blockOf, type RecordSpan, spansOf } from './record-spans.ts'

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
