import { equalBytes } from '../model/bytes.ts'
import type { StreamPosition } from '../model/position.ts'
import { equalHeaders, type SequencedRecord } from '../model/record.ts'
import type { MirrorGap } from './mirror-state.ts'

/** The end of the local copy of a stream. */
export interface CopyEnd {
  readonly tail: StreamPosition
  /** The record before the tail, unless it was trimmed. */
  readonly last: SequencedRecord | undefined
}

/** The first records of a read that begins one record before the end of a copy; none at the tail. */
export interface FirstArrival {
  readonly records: readonly SequencedRecord[]
  /** The tail of the remote stream. Known if there are no records. */
  readonly tail: StreamPosition | undefined
}

/** How a remote stream continues a local copy. */
type Continuation =
  /** The copy continues after the first `skip` records. */
  | { readonly kind: 'same'; readonly skip: 0 | 1 }
  | { readonly kind: 'replaced' }
  | { readonly kind: 'trimmed'; readonly gap: MirrorGap }

const REPLACED: Continuation = { kind: 'replaced' }

/**
 * Decides whether a remote stream continues a local copy with at least one sequence number. It does if it has
 * the last record of the copy, or if that was trimmed on both sides, one with the same timestamp. Where
 * nothing can be compared because it was trimmed, there is a gap, which may be empty.
 */
export function continuationOf(copy: CopyEnd, { records, tail }: FirstArrival): Continuation {
  const { last } = copy
  const end = copy.tail.seqNum
  const first = records[0]
  const position = first?.seqNum ?? tail?.seqNum ?? 0
  const isNew = isUnstarted(copy)
  if (first?.seqNum === end - 1) {
    const isSame = last === undefined ? first.timestamp === copy.tail.timestamp : equalRecords(first, last)
    return isSame || isNew ? { kind: 'same', skip: 1 } : REPLACED
  }
  if (position < end) return REPLACED
  if (position === end && isNew) return { kind: 'same', skip: 0 }
  if (first === undefined && position === end) {
    return tail?.timestamp === copy.tail.timestamp ? { kind: 'same', skip: 0 } : REPLACED
  }
  return { kind: 'trimmed', gap: { from: end, to: position } }
}

/** Whether the copy was created and has no records yet, so that every stream continues it. */
function isUnstarted({ tail, last }: CopyEnd): boolean {
  return last === undefined && tail.timestamp === 0
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
