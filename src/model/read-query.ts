import { invalid } from './errors.ts'
import { INTEGER_MAX, WAIT_SECONDS_MAX } from './limits.ts'

/** What to read (service-interface.md "Read records"). At most one of the three starts; none is `tailOffset: 0`. */
export interface ReadQuery {
  /** Start at the first record with this sequence number or a larger one. */
  readonly seqNum?: number | undefined
  /** Start at the first record with this timestamp (milliseconds) or a later one. */
  readonly timestamp?: number | undefined
  /** Start this many records before the tail. */
  readonly tailOffset?: number | undefined
  /** A start beyond the tail becomes the tail. */
  readonly clamp?: boolean | undefined
  /** Stop after this many records. */
  readonly count?: number | undefined
  /** Stop before this many metered bytes are exceeded. */
  readonly bytes?: number | undefined
  /** Stop before the first record with this timestamp (milliseconds) or a later one. */
  readonly until?: number | undefined
  /** How long to wait at the tail for new records, in seconds. Without bounds, a session's default is for ever. */
  readonly waitSeconds?: number | undefined
}

/**
 * Throws 422 `invalid` for a query that no stream could answer (wire-behaviour.md 5.1). A `tailOffset` or bound beyond 2^53 - 1 can only
 * mean everything and passes; a start beyond it does not (rulings.md "Numbers").
 */
export function checkReadQuery(query: ReadQuery): void {
  for (const field of ['seqNum', 'timestamp', 'tailOffset', 'count', 'bytes', 'until'] as const) {
    const value = query[field]
    const meansEverything = field !== 'seqNum' && field !== 'timestamp' && value! > INTEGER_MAX
    if (value !== undefined && !meansEverything && !(Number.isSafeInteger(value) && value >= 0)) {
      throw invalid(`${field} must be an integer from 0 to ${INTEGER_MAX}`, field)
    }
  }
  const wait = query.waitSeconds
  if (wait !== undefined && !(wait >= 0 && wait <= WAIT_SECONDS_MAX)) {
    throw invalid(`waitSeconds must be a number from 0 to ${WAIT_SECONDS_MAX}`, 'waitSeconds')
  }
  const starts = [query.seqNum, query.timestamp, query.tailOffset].filter((start) => start !== undefined)
  if (starts.length > 1) {
    throw invalid('only one of seq_num, timestamp, or tail_offset can be provided', 'seq_num')
  }
  if (query.timestamp !== undefined && query.until !== undefined && query.timestamp >= query.until) {
    throw invalid('start `timestamp` exceeds or equal to `until`', 'timestamp')
  }
}
