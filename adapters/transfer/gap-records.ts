import { fenceRecord, type SequencedRecord, type StreamPosition, trimRecord } from '../../src/index.ts'
import { EMPTY_BYTES } from '../../src/model/bytes.ts'
import { BATCH_RECORDS_MAX } from '../../src/model/limits.ts'

/** Positions whose records no longer exist. */
export interface Gap {
  /** The start of the gap, with the timestamp of the record before it. */
  readonly from: StreamPosition
  /** The sequence number of the first record after the gap. */
  readonly to: number
  /** The timestamp of the last position: that of `from` unless the stream ends with the gap. */
  readonly lastTimestamp: number
  /** A fencing token that a record in the gap set. */
  readonly fencingToken: string | undefined
  /** Whether no record exists before the gap, so that it can be trimmed. */
  readonly isLeading: boolean
}

/** Whether the last gap record trims the gap. Otherwise the gap records have to expire. */
export function isTrimmed(gap: Gap): boolean {
  return gap.isLeading && !isTooNarrow(gap)
}

/** Whether the gap has only one position for both a trim and a fence. */
export function isTooNarrow({ isLeading, fencingToken, from, to }: Gap): boolean {
  return isLeading && fencingToken !== undefined && to - from.seqNum === 1
}

/**
 * Yields empty records for the positions of a gap in batches. The last batch contains the fence and the trim.
 */
export function* gapRecords(gap: Gap): Generator<readonly SequencedRecord[]> {
  const { from, to } = gap
  for (let first = from.seqNum; first < to; ) {
    const left = to - first
    // If the import is interrupted, a single remaining position would be too narrow for a fence and a trim.
    const count = left === BATCH_RECORDS_MAX + 1 ? left - 2 : Math.min(BATCH_RECORDS_MAX, left)
    const batchStart = first
    yield Array.from({ length: count }, (_, i) => gapRecord(gap, batchStart + i))
    first += count
  }
}

function gapRecord(gap: Gap, seqNum: number): SequencedRecord {
  const { from, to, lastTimestamp, fencingToken } = gap
  const timestamp = seqNum === to - 1 ? lastTimestamp : from.timestamp
  const trimAt = isTrimmed(gap) ? to - 1 : undefined
  const fenceAt = fencingToken === undefined ? undefined : (trimAt ?? to) - 1
  if (seqNum === trimAt) return { seqNum, timestamp, ...trimRecord(to) }
  if (seqNum === fenceAt) return { seqNum, timestamp, ...fenceRecord(fencingToken!) }
  return { seqNum, timestamp, headers: [], body: EMPTY_BYTES }
}
