import { invalid } from './errors.ts'
import { INTEGER_MAX, WAIT_SECONDS_MAX } from './limits.ts'
import {
  assertInteger,
  assertMembers,
  type Check,
  type MembersOf,
  millisecondsOf,
  type Time,
} from './validation.ts'

/**
 * Where a read starts, what bounds it and how long it waits (docs/protocol.md "Read parameters"). At most one
 * of `seqNum`, `timestamp` and `tailOffset` can be given; without one the read starts at the tail.
 */
export interface ReadQuery {
  /** Starts at the first record with this sequence number or a larger one. An integer from 0 to 2^53 - 1. */
  readonly seqNum?: number | undefined
  /** Starts at the first record with this timestamp or a later one. */
  readonly timestamp?: Time | undefined
  /** Starts this many records before the tail, or at the first record of a shorter stream. An integer. */
  readonly tailOffset?: number | undefined
  /**
   * Moves a start beyond the tail to the tail. By default such a read rejects with `range_not_satisfiable`.
   */
  readonly clamp?: boolean | undefined
  /** Stops after this many records. Unlimited by default; one batch holds at most 1,000 in any case. */
  readonly count?: number | undefined
  /**
   * Stops before this many metered bytes are exceeded. Unlimited by default; one batch holds at most 1 MiB.
   */
  readonly bytes?: number | undefined
  /** Stops before the first record with this timestamp or a later one. */
  readonly until?: Time | undefined
  /**
   * Seconds to wait at the tail for new records, from 0 to 2^32 - 1. `read` waits at most 60 and by default 0
   * seconds. A session with `count`, `bytes` or `until` does not wait by default, one without any of them
   * waits forever.
   */
  readonly waitSeconds?: number | undefined
}

/** Allows integers beyond 2^53 - 1, which mean "everything". Not for starts, which must be exact. */
const assertBound: Check = (value, field) => {
  if (!(Number.isInteger(value) && (value as number) > INTEGER_MAX)) assertInteger(value, field)
}

const READ_QUERY: MembersOf<ReadQuery> = {
  seqNum: assertInteger,
  timestamp: (value, field) => assertInteger(millisecondsOf(value as Time), field),
  tailOffset: assertBound,
  clamp: 'boolean',
  count: assertBound,
  bytes: assertBound,
  until: (value, field, fail) => assertBound(millisecondsOf(value as Time), field, fail),
  waitSeconds: (value, field) => {
    if (!(typeof value === 'number' && value >= 0 && value <= WAIT_SECONDS_MAX)) {
      throw invalid(`\`waitSeconds\` must be a number from 0 to ${WAIT_SECONDS_MAX}`, field)
    }
  },
}

/** Throws 422 `invalid` for a query that no stream can answer (docs/protocol.md "Invalid requests"). */
export function assertReadQuery(query: ReadQuery): void {
  assertMembers(query, READ_QUERY, 'query')
  const { seqNum, tailOffset, timestamp, until } = query
  if ([seqNum, timestamp, tailOffset].filter((start) => start !== undefined).length > 1) {
    throw invalid('only one of `seqNum`, `timestamp` and `tailOffset` can be provided', 'seqNum')
  }
  if (timestamp !== undefined && until !== undefined && millisecondsOf(timestamp) >= millisecondsOf(until)) {
    throw invalid('start `timestamp` exceeds or equal to `until`', 'timestamp')
  }
}
