import { fenceRecord, type SequencedRecord, type StreamPosition, trimRecord } from '../../src/index.ts'
import { EMPTY_BYTES } from '../../src/model/bytes.ts'
import { BATCH_RECORDS_MAX } from '../../src/model/limits.ts'

/** Positions whose records no longer exist, and what their records did that counts. */
export interface Gap {
  /** Where the gap begins, and the timestamp of the record before it. */
  readonly from: StreamPosition
  /** Where the first record behind it goes. */
  readonly to: number
  /** The timestamp of the last position: that of `from`, unless the stream ends with the gap. */
  readonly lastTimestamp: number
  /** A fencing token that a record of the gap has set. */
  readonly fencingToken: string | undefined
  /** Whether nothing that exists comes before: then it can be trimmed. */
  readonly isLeading: boolean
}

/** Whether the last filler hides them all. Otherwise they have to expire. */
export function isTrimmed(gap: Gap): boolean {
  return gap.isLeading && !isTooNarrow(gap)
}

/** Whether a trim would need the position that the fence needs. */
export function isTooNarrow({ isLeading, fencingToken, from, to }: Gap): boolean {
  return isLeading && fencingToken !== undefined && to - from.seqNum === 1
}

/** Records for the positions of a gap, a batch at a time. What sets the fencing token and what trims is in the last. */
export function* fillers(gap: Gap): Generator<readonly SequencedRecord[]> {
  const { from, to } = gap
  for (let first = from.seqNum; first < to; ) {
    const left = to - first
    // One position left over, after an interruption, would be too narrow for both.
    const count = left === BATCH_RECORDS_MAX + 1 ? left - 2 : Math.min(BATCH_RECORDS_MAX, left)
    const begin = first
    yield Array.from({ length: count }, (_, i) => filler(gap, begin + i))
    first += count
  }
}

function filler(gap: Gap, seqNum: number): SequencedRecord {
  const { from, to, lastTimestamp, fencingToken } = gap
  const timestamp = seqNum === to - 1 ? lastTimestamp : from.timestamp
  const trimAt = isTrimmed(gap) ? to - 1 : undefined
  const fenceAt = fencingToken === undefined ? undefined : (trimAt ?? to) - 1
  if (seqNum === trimAt) return { seqNum, timestamp, ...trimRecord(to) }
  if (seqNum === fenceAt) return { seqNum, timestamp, ...fenceRecord(fencingToken!) }
  return { seqNum, timestamp, headers: [], body: EMPTY_BYTES }
}
