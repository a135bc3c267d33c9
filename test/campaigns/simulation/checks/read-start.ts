import type { ReadQuery } from '../../../../src/index.ts'
import { millisecondsOf } from '../../../../src/model/validation.ts'
import type { Moment } from '../stream-history.ts'

/** The start of a read: the tail, or the first visible record from there on. */
export type ReadStart = 'beyond the tail' | 'tail' | { readonly seqNum: number }

/** Returns the start of a read (docs/protocol.md "Start of a read"). */
export function startOf(query: ReadQuery, { log, state, tailTimestamp }: Moment): ReadStart {
  const { seqNum, timestamp, tailOffset = 0, clamp } = query
  if (seqNum !== undefined) {
    if (seqNum > state.tail) return clamp ? 'tail' : 'beyond the tail'
    return seqNum === state.tail ? 'tail' : { seqNum }
  }
  if (timestamp !== undefined) {
    const from = millisecondsOf(timestamp)
    if (from > tailTimestamp) return clamp ? 'tail' : 'beyond the tail'
    const first = log?.records.find((record) => record.timestamp >= from)
    return first === undefined || first.seqNum >= state.tail ? 'tail' : { seqNum: first.seqNum }
  }
  const start = Math.max(0, state.tail - tailOffset)
  return start === state.tail ? 'tail' : { seqNum: start }
}

/** Returns how long the read waits at the tail, in milliseconds (rules 5 to 8). */
export function waitOf(query: ReadQuery, kind: 'unary' | 'session'): number {
  const { waitMs, count, bytes, until } = query
  if (kind === 'unary') return Math.min(waitMs ?? 0, 60_000)
  if (waitMs !== undefined) return waitMs
  return count === undefined && bytes === undefined && until === undefined ? Number.POSITIVE_INFINITY : 0
}
