import { admitSized, admitsAll, type ReadLimits } from '../../core/read-plan.ts'
import { EMPTY_BYTES } from '../../model/bytes.ts'
import type { StoredBlock } from '../../storage/contract.ts'
import type { RecordSpan } from '../../storage/record-spans.ts'

/** The records that a read takes of a stored block. */
export interface BlockPart {
  readonly data: Uint8Array
  readonly count: number
  readonly meteredBytes: number
  /** -1 if there are none. */
  readonly lastSeqNum: number
  /** The sequence number at which the read continues. */
  readonly next: number
  /** Whether a limit forbids the next record. */
  readonly ended: boolean
}

/**
 * Takes the records from `from` to below `endSeqNum` that the limits admit: the whole block as it is, or the
 * bytes of a part. `spansOf` returns the records of the block.
 */
export function blockPart(
  block: StoredBlock,
  from: number,
  endSeqNum: number,
  limits: ReadLimits,
  spansOf: (block: StoredBlock) => readonly RecordSpan[],
): BlockPart {
  const count = block.endSeqNum - block.firstSeqNum
  const { meteredBytes, lastTimestamp, data } = block
  const isWhole = block.firstSeqNum >= from && block.endSeqNum <= endSeqNum
  if (isWhole && admitsAll(limits, { count, meteredBytes, lastTimestamp })) {
    const next = block.endSeqNum
    return { data, count, meteredBytes, lastSeqNum: next - 1, next, ended: false }
  }
  const spans = spansOf(block).filter(({ seqNum }) => seqNum >= from && seqNum < endSeqNum)
  const admitted = admitSized(limits, spans)
  const ended = admitted.count < spans.length
  const next = ended ? spans[admitted.count]!.seqNum : Math.min(block.endSeqNum, endSeqNum)
  const taken = spans.slice(0, admitted.count)
  return { data: copyOf(data, taken), ...admitted, lastSeqNum: taken.at(-1)?.seqNum ?? -1, next, ended }
}

/** Copies the bytes of a few records, which must not keep the whole block in memory. */
function copyOf(data: Uint8Array, spans: readonly RecordSpan[]): Uint8Array {
  return spans.length === 0 ? EMPTY_BYTES : new Uint8Array(data.subarray(spans[0]!.start, spans.at(-1)!.end))
}
