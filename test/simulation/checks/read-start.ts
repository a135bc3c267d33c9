import type { ReadQuery } from '../../../src/index.ts'
import type { Moment } from '../stream-history.ts'

/** Where a read begins: at the tail, or at the first record that it may deliver from there on. */
export type ReadStart = 'beyond the tail' | 'tail' | { readonly seqNum: number }

/** service-interface.md "Read records", rules 1 to 3. */
export function startOf(query: ReadQuery, { log, state, tailTimestamp }: Moment): ReadStart {
  const { seqNum, timestamp, tailOffset = 0, clamp } = query
  if (seqNum !== undefined) {
    if (seqNum > state.tail) return clamp ? 'tail' : 'beyond the tail'
    return seqNum === state.tail ? 'tail' : { seqNum }
  }
  if (timestamp !== undefined) {
    if (timestamp > tailTimestamp) return clamp ? 'tail' : 'beyond the tail'
    const first = log?.records.find((record) => record.timestamp >= timestamp)
    return first === undefined || first.seqNum >= state.tail ? 'tail' : { seqNum: first.seqNum }
  }
  const start = Math.max(0, state.tail - tailOffset)
  return start === state.tail ? 'tail' : { seqNum: start }
}

/** How long the read waits at the tail, in milliseconds (rules 5 to 8). */
export function waitOf(query: ReadQuery, kind: 'unary' | 'session'): number {
  const { waitSeconds, count, bytes, until } = query
  if (kind === 'unary') return Math.min(waitSeconds ?? 0, 60) * 1000
  if (waitSeconds !== undefined) return waitSeconds * 1000
  return count === undefined && bytes === undefined && until === undefined ? Number.POSITIVE_INFINITY : 0
}
