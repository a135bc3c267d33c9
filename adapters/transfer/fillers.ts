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
export function isTrimmed({ isLeading, fencingToken, from, to }: Gap): boolean {
  return isLeading && !(fencingToken !== undefined && to - from.seqNum === 1)
}

/** Records for the positions of a gap, a batch at a time. */
export function* fillers(gap: Gap): Generator<readonly SequencedRecord[]> {
  const { from, to } = gap
  for (let first = from.seqNum; first < to; first += BATCH_RECORDS_MAX) {
    const count = Math.min(BATCH_RECORDS_MAX, to - first)
    yield Array.from({ length: count }, (_, i) => filler(gap, first + i))
  }
}

function filler(gap: Gap, seqNum: number): SequencedRecord {
  const { from, to, lastTimestamp, fencingToken } = gap
  const isLast = seqNum === to - 1
  const timestamp = isLast ? lastTimestamp : from.timestamp
  if (seqNum === from.seqNum && fencingToken !== undefined) {
    return { seqNum, timestamp, ...fenceRecord(fencingToken) }
  }
  if (isLast && isTrimmed(gap)) return { seqNum, timestamp, ...trimRecord(to) }
  return { seqNum, timestamp, headers: [], body: EMPTY_BYTES }
}
