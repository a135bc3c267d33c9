import { equalBytes } from '../model/bytes.ts'
import type { StreamPosition } from '../model/position.ts'
import { equalHeaders, type SequencedRecord } from '../model/record.ts'
import type { MirrorGap } from './mirror-state.ts'

/** How many of its last records a copy is compared by: the server may have created the stream again. */
export const COMPARED_RECORDS = 16

/** The end of the local copy of a stream. */
export interface CopyEnd {
  readonly tail: StreamPosition
  /** The records before the tail, at most {@link COMPARED_RECORDS}, as far as they were not trimmed. */
  readonly last: readonly SequencedRecord[]
}

/** The first records of a read that begins with those that are compared; none at the tail. */
export interface FirstArrival {
  readonly records: readonly SequencedRecord[]
  /** The tail of the remote stream. Known if there are no records. */
  readonly tail: StreamPosition | undefined
}

/** How a remote stream continues a local copy. */
type Continuation =
  | { readonly kind: 'same' }
  | { readonly kind: 'replaced' }
  | { readonly kind: 'trimmed'; readonly gap: MirrorGap }

/** Returns the sequence number with which a read begins that continues a copy. */
export function comparedFrom({ tail, last }: CopyEnd): number {
  return Math.max(0, last[0]?.seqNum ?? tail.seqNum - 1)
}

/**
 * Decides whether a remote stream continues a local copy with at least one sequence number. It does if it has
 * the last records of the copy, or if the last one was trimmed here, one with the same timestamp. Where
 * nothing can be compared because it was trimmed, there is a gap, which may be empty.
 */
export function continuationOf(copy: CopyEnd, { records, tail }: FirstArrival): Continuation {
  const end = copy.tail.seqNum
  const position = records[0]?.seqNum ?? tail?.seqNum ?? 0
  const isShorter = tail !== undefined && tail.seqNum < end
  if (isShorter || !isContinuedBy(copy, records)) return { kind: 'replaced' }
  if (position < end || (position === end && isUnstarted(copy))) return { kind: 'same' }
  if (records.length === 0 && position === end && tail?.timestamp === copy.tail.timestamp)
    return { kind: 'same' }
  if (records.length === 0 && position === end) return { kind: 'replaced' }
  return { kind: 'trimmed', gap: { from: end, to: position } }
}

/** Whether those of some records that lie before the end of a copy are the records of the copy. */
export function isContinuedBy(copy: CopyEnd, records: readonly SequencedRecord[]): boolean {
  const { tail, last } = copy
  if (isUnstarted(copy)) return true
  return records.every((record) => {
    const own = last.find(({ seqNum }) => seqNum === record.seqNum)
    if (own !== undefined) return equalRecords(own, record)
    return record.seqNum !== tail.seqNum - 1 || record.timestamp === tail.timestamp
  })
}

/** Whether a copy was created and has no records yet, so that every stream continues it. */
function isUnstarted({ tail, last }: CopyEnd): boolean {
  return last.length === 0 && tail.timestamp === 0
}

/** Whether two records are the same in every member that is stored. */
export function equalRecords(one: SequencedRecord, other: SequencedRecord): boolean {
  return (
    one.seqNum === other.seqNum &&
    one.timestamp === other.timestamp &&
    equalBytes(one.body, other.body) &&
    equalHeaders(one.headers, other.headers)
  )
}
