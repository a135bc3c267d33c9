import { BlockReader, TAG_RECORD } from './block-codec.ts'
import type { ReadRange, StoredBlock } from './contract.ts'
import { blockOf, type RecordSpan, readSpan } from './record-spans.ts'

/** The beginning of a block without its data. */
type BlockRange = Pick<StoredBlock, 'firstSeqNum' | 'endSeqNum' | 'firstTimestamp' | 'meteredBytes'>

/** Whether a read that begins with this block wants only some of its records. */
export function wantsPart(block: BlockRange, range: ReadRange): boolean {
  if (range.unsplit) return false
  const { from, endSeqNum, bytesMax, recordsMax = Number.POSITIVE_INFINITY } = range
  const beginsLater =
    'seqNum' in from ? from.seqNum > block.firstSeqNum : from.timestamp > block.firstTimestamp
  return (
    beginsLater ||
    endSeqNum < block.endSeqNum ||
    recordsMax < block.endSeqNum - block.firstSeqNum ||
    bytesMax < block.meteredBytes
  )
}

/**
 * Returns the records of `data` that a read wants, as a block with views of the data: from its first record
 * to the one that reaches a limit. `data` contains whole records, the first one with `firstSeqNum`. Undefined
 * if there are none, or if they are not the ones expected.
 */
export function cutRecords(
  data: Uint8Array,
  firstSeqNum: number,
  expiresAt: number | null,
  { from, endSeqNum, bytesMax, recordsMax = Number.POSITIVE_INFINITY }: ReadRange,
): StoredBlock | undefined {
  const spans: RecordSpan[] = []
  let meteredBytes = 0
  try {
    const reader = new BlockReader(data)
    for (let seqNum = firstSeqNum; reader.offset < data.length && seqNum < endSeqNum; seqNum++) {
      const start = reader.offset
      if (reader.byte() !== TAG_RECORD) return undefined
      const end = reader.end()
      if ('seqNum' in from && seqNum < from.seqNum) {
        reader.offset = end
        continue
      }
      const span = readSpan(reader, start, end)
      if (span.seqNum !== seqNum) return undefined
      if ('timestamp' in from && spans.length === 0 && span.timestamp < from.timestamp) continue
      spans.push(span)
      meteredBytes += span.meteredBytes
      if (meteredBytes >= bytesMax || spans.length >= recordsMax) break
    }
  } catch {
    return undefined
  }
  return spans.length === 0 ? undefined : blockOf(data, spans, expiresAt)
}

/** Smaller blocks are not worth searching for a record. */
const CUT_BYTES_MIN = 4_096

/**
 * Returns the records that a read wants of the block that it begins with, with views of its data; the block
 * itself if it is small or cannot be cut.
 */
export function cutBlock(block: StoredBlock, range: ReadRange): StoredBlock {
  const isCut = block.data.length > CUT_BYTES_MIN && wantsPart(block, range)
  return (isCut && cutRecords(block.data, block.firstSeqNum, block.expiresAt, range)) || block
}
