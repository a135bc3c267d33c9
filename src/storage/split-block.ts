import type { StoredBlock } from './contract.ts'
import { type RecordSpan, spansOf } from './record-spans.ts'

/**
 * A block as consecutive ones with at most `bytesMax` bytes of data each, unless a single record has more: for a storage that keeps a large value
 * in pieces, and would have to copy them into one to give it back. The data are views. A block that cannot be cut, because it is sealed or holds
 * other records than it says, stays as it is.
 */
export function splitBlock(block: StoredBlock, bytesMax: number): StoredBlock[] {
  if (block.data.length <= bytesMax) return [block]
  const pieces: StoredBlock[] = []
  let spans: RecordSpan[] = []
  let meteredBytes = 0
  try {
    for (const span of spansOf(block)) {
      if (spans.length > 0 && span.end - spans[0]!.start > bytesMax) {
        pieces.push(pieceOf(block, spans))
        spans = []
      }
      spans.push(span)
      meteredBytes += span.meteredBytes
    }
  } catch {
    return [block]
  }
  const last = pieceOf(block, spans)
  const agrees =
    meteredBytes === block.meteredBytes &&
    (pieces[0] ?? last).firstTimestamp === block.firstTimestamp &&
    last.lastTimestamp === block.lastTimestamp
  return agrees ? [...pieces, last] : [block]
}

/** Of records one behind the other. */
function pieceOf({ expiresAt, data }: StoredBlock, spans: readonly RecordSpan[]): StoredBlock {
  const [first, last] = [spans[0]!, spans.at(-1)!]
  return {
    firstSeqNum: first.seqNum,
    endSeqNum: last.seqNum + 1,
    firstTimestamp: first.timestamp,
    lastTimestamp: last.timestamp,
    meteredBytes: spans.reduce((sum, { meteredBytes }) => sum + meteredBytes, 0),
    expiresAt,
    data: data.subarray(first.start, last.end),
  }
}
