import { invalid } from './errors.ts'
import { INTEGER_MAX } from './limits.ts'
import {
  assertInteger,
  assertMembers,
  assertTime,
  type Check,
  type MembersOf,
  millisecondsOf,
  type Time,
} from './validation.ts'

/**
 * The start, the bounds and the wait of a read (docs/protocol.md "Read parameters"). At most one of `seqNum`,
 * `timestamp` and `tailOffset` can be given. Without one, `read` and `readBatch` start at the first record,
 * and `follow` at the tail.
 */
export interface ReadQuery {
  /** Starts at the first record with this sequence number or a larger one. An integer from 0 to 2^53 - 1. */
  readonly seqNum?: number | undefined
  /** Starts at the first record with this timestamp or a later one. */
  readonly timestamp?: Time | undefined
  /** Starts this many records before the tail, or at the first record of a shorter stream. An integer. */
  readonly tailOffset?: number | undefined
  /** Moves a start beyond the tail to the tail. By default it rejects with `range_not_satisfiable`. */
  readonly clamp?: boolean | undefined
  /** Stops after this many records. Unlimited by default; one batch holds at most 1,000 in any case. */
  readonly count?: number | undefined
  /** Stops before this many metered bytes are exceeded. Unlimited by default; a batch holds 1 MiB at most. */
  readonly bytes?: number | undefined
  /** Stops before the first record with this timestamp or a later one. */
  readonly until?: Time | undefined
  /**
   * Milliseconds to wait at the tail for new records: 0 or more. `read` does not wait by default, `follow`
   * waits forever, `readBatch` waits 0 by default and at most 60,000.
   */
  readonly waitMs?: number | undefined
}

/** Allows integers beyond 2^53 - 1, which mean "everything". Not for starts, which must be exact. */
const assertBound: Check = (value, field) => {
  if (!(Number.isInteger(value) && (value as number) > INTEGER_MAX)) assertInteger(value, field)
}

const READ_QUERY: MembersOf<ReadQuery> = {
  seqNum: assertInteger,
  timestamp: assertTime,
  tailOffset: assertBound,
  clamp: 'boolean',
  count: assertBound,
  bytes: assertBound,
  until: (value, field) => assertBound(millisecondsOf(value as Time), field),
  waitMs: (value, field) => {
    if (!(typeof value === 'number' && value >= 0)) {
      throw invalid(`\`${field}\` must be a number, 0 or more`, field)
    }
  },
}

/** Throws `invalid` for a query that no stream can answer (docs/protocol.md "Invalid requests"). */
export function assertReadQuery(query: ReadQuery): void {
  assertMembers(query, READ_QUERY, 'query')
  const { timestamp, until } = query
  if (startsIn(query) > 1) {
    throw invalid('only one of `seqNum`, `timestamp` and `tailOffset` can be provided', 'seqNum')
  }
  if (timestamp !== undefined && until !== undefined && millisecondsOf(timestamp) >= millisecondsOf(until)) {
    throw invalid('start `timestamp` exceeds or equal to `until`', 'timestamp')
  }
}

/** How many starts a query has, of which one is allowed. */
export function startsIn({ seqNum, timestamp, tailOffset }: ReadQuery): number {
  return [seqNum, timestamp, tailOffset].filter((start) => start !== undefined).length
}

/** The query of `read`: by default from the first record, without waiting. Throws `invalid`. */
export function historyQuery(query: ReadQuery): ReadQuery {
  assertReadQuery(query)
  const { waitMs = 0 } = query
  return startsIn(query) === 1 ? { ...query, waitMs } : { ...query, seqNum: 0, waitMs }
}

/** The query of `follow`: by default from the tail, without an end. Throws `invalid`. */
export function followQuery(query: ReadQuery): ReadQuery {
  assertReadQuery(query)
  return { ...query, waitMs: query.waitMs ?? Number.POSITIVE_INFINITY }
}
