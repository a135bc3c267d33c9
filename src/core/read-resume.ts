import type { ReadQuery } from '../model/read-query.ts'

/** What an event id of an SSE read tells: where it was, and what the connection had delivered. */
export interface DeliveredSoFar {
  readonly lastSeqNum: number
  readonly count: number
  readonly bytes: number
}

/** The query that goes on after the last event that arrived (wire-behaviour.md 5.8): its start replaces the one given. */
export function resumeQuery(query: ReadQuery, delivered: DeliveredSoFar): ReadQuery {
  const { timestamp: _timestamp, tailOffset: _tailOffset, ...rest } = query
  return {
    ...rest,
    seqNum: Math.min(delivered.lastSeqNum + 1, Number.MAX_SAFE_INTEGER),
    count: query.count === undefined ? undefined : Math.max(0, query.count - delivered.count),
    bytes: query.bytes === undefined ? undefined : Math.max(0, query.bytes - delivered.bytes),
  }
}
