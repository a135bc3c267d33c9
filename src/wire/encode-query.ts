import { INTEGER_MAX, UNARY_WAIT_MS_MAX, WAIT_SECONDS_MAX } from '../model/limits.ts'
import type { ReadQuery } from '../model/read-query.ts'
import { millisecondsOf } from '../model/validation.ts'

/** The parameters of a query; undefined ones are left out. */
export type QueryParts = Readonly<Record<string, string | number | boolean | undefined>>

/** A bound that means "everything". */
const UNBOUNDED = '18446744073709551615'

/** The text of a query, with its question mark if it has parameters. */
export function queryText(parts: QueryParts): string {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(parts)) {
    if (value !== undefined) parameters.set(name, String(value))
  }
  const text = parameters.toString()
  return text === '' ? '' : `?${text}`
}

/**
 * Encodes a valid query of a read as the library means it: a start at a time after the last record moves to
 * the tail, and a session that does not wait ends at the tail as it was when the session was opened, which
 * takes a bound on the wire. `wait` is in seconds, rounded up.
 */
export function readQueryParts(query: ReadQuery, kind: 'unary' | 'session'): QueryParts {
  const { seqNum, timestamp, tailOffset, clamp, count, bytes, until, waitMs } = query
  const isBounded = count !== undefined || bytes !== undefined || until !== undefined
  const endsAtTail = kind === 'session' && waitMs === 0 && !isBounded
  const followsForEver = kind === 'session' && waitMs === Number.POSITIVE_INFINITY && !isBounded
  return {
    seq_num: seqNum,
    timestamp: timestamp === undefined ? undefined : millisecondsOf(timestamp),
    tail_offset: boundOf(tailOffset),
    clamp: clamp || timestamp !== undefined || undefined,
    count: endsAtTail ? UNBOUNDED : boundOf(count),
    bytes: boundOf(bytes),
    until: until === undefined ? undefined : boundOf(millisecondsOf(until)),
    wait: waitMs === undefined || followsForEver ? undefined : waitSeconds(waitMs, kind),
  }
}

function waitSeconds(waitMs: number, kind: 'unary' | 'session'): number {
  const most = kind === 'unary' ? UNARY_WAIT_MS_MAX / 1000 : WAIT_SECONDS_MAX
  return Math.min(Math.ceil(waitMs / 1000), most)
}

function boundOf(value: number | undefined): number | string | undefined {
  return value !== undefined && value > INTEGER_MAX ? UNBOUNDED : value
}
