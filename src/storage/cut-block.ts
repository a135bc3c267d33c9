import { meteredBytesOf } from '../model/record.ts'
import { FieldReader, readBlockRecord } from './block-codec.ts'
import type { ReadRange, StoredBlock } from './contract.ts'

/** The position and size of a record in a block. */
export interface RecordSpan {
  readonly seqNum: number
  readonly timestamp: number
  readonly meteredBytes: number
  /** Offset of the record with its tag. The bytes between two such offsets are a block of their own. */
  readonly start: number
  readonly end: number
}

/** Returns where the records of a block are. Throws `RangeError` if `data` is not a block. */
export function recordSpans(data: Uint8Array): RecordSpan[] {
  const reader = new FieldReader(data)
  const spans: RecordSpan[] = []
  while (reader.offset < data.length) spans.push(readSpan(reader))
  return spans
}

function readSpan(reader: FieldReader): RecordSpan {
  const start = reader.offset
  const { seqNum, timestamp, headers, body } = readBlockRecord(reader)
  return { seqNum, timestamp, meteredBytes: meteredBytesOf(headers, body), start, end: reader.offset }
}

/** The records of an unencrypted block. Throws `RangeError` if they do not match the block's metadata. */
export function spansOf({ firstSeqNum, endSeqNum, data }: StoredBlock): RecordSpan[] {
  const spans = recordSpans(data)
  const isDense = spans.every(({ seqNum }, index) => seqNum === firstSeqNum + index)
  if (!isDense || spans.length !== endSeqNum - firstSeqNum)
    throw new RangeError('the records of a block do not match its metadata')
  return spans
}

/** The block of consecutive records in `data`, of which it has a view. */
export function blockOf(
  data: Uint8Array,
  spans: readonly RecordSpan[],
  expiresAt: number | null,
): StoredBlock {
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

/** The beginning of a block without its data. */
type BlockRange = Pick<StoredBlock, 'firstSeqNum' | 'endSeqNum' | 'firstTimestamp' | 'meteredBytes'>

/** Whether a read that begins with this block wants only some of its records. */
export function wantsPart(block: BlockRange, range: ReadRange): boolean {
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
    const reader = new FieldReader(data)
    for (let seqNum = firstSeqNum; reader.offset < data.length && seqNum < endSeqNum; seqNum++) {
      if ('seqNum' in from && seqNum < from.seqNum) {
        reader.offset = reader.recordEnd()
        continue
      }
      const span = readSpan(reader)
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
