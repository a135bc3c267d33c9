import { HeadwaterError, invalid } from '../model/errors.ts'
import { type ListQuery, listLimit } from '../model/info.ts'
import { INTEGER_MAX, LIST_LIMIT_MAX, SECONDS_MAX, UNARY_WAIT_MS_MAX } from '../model/limits.ts'
import { METRIC_INTERVALS, type MetricSet, type MetricsQuery } from '../model/metrics.ts'
import type { NameRole } from '../model/names.ts'
import { type ReadQuery, startsIn } from '../model/read-query.ts'
import { assertInteger, millisecondsOf, type Time } from '../model/validation.ts'

/**
 * Decodes the query of a read (docs/protocol.md "Read parameters"). Throws 400 `bad_query` if it is
 * malformed, then 422 `invalid` for a start beyond 2^53 - 1 or more than one start. Larger bounds stay
 * larger, rounded: they can only mean everything. `assertReadQuery` compares `timestamp` with `until`,
 * because a resumed SSE read replaces the start first.
 */
export function decodeReadQuery(search: string): ReadQuery {
  const parameters = new QueryParameters(search)
  const wait = parameters.integer('wait', SECONDS_MAX)
  const query = {
    seqNum: parameters.integer('seq_num'),
    timestamp: parameters.integer('timestamp'),
    tailOffset: parameters.integer('tail_offset'),
    clamp: parameters.boolean('clamp'),
    count: parameters.integer('count'),
    bytes: parameters.integer('bytes'),
    until: parameters.integer('until'),
    waitMs: wait === undefined ? undefined : wait * 1000,
  }
  const { seqNum, timestamp } = query
  if (startsIn(query) > 1) {
    throw invalid('only one of seq_num, timestamp, or tail_offset can be provided', 'seq_num')
  }
  if (seqNum !== undefined) assertInteger(seqNum, 'seq_num')
  if (timestamp !== undefined) assertInteger(timestamp, 'timestamp')
  return query
}

/** The rule of a `prefix` or `start_after`: `basinPrefixProblem` or `streamPrefixProblem`. */
export type PrefixRule = (text: string, role: NameRole) => string | undefined

/** Decodes the query of a list (docs/protocol.md "Lists"). Throws 400 `bad_query`. */
export function decodeListQuery(search: string, prefixProblem: PrefixRule): ListQuery {
  const parameters = new QueryParameters(search)
  const checked = (name: string, role: NameRole) => {
    const text = parameters.text(name)
    const problem = text === undefined ? undefined : prefixProblem(text, role)
    if (problem !== undefined) throw badQuery(problem, name)
    return text
  }
  const prefix = checked('prefix', 'prefix')
  const startAfter = checked('start_after', 'start-after')
  const limit = parameters.integer('limit') || LIST_LIMIT_MAX
  return { prefix, startAfter, limit: Math.min(limit, LIST_LIMIT_MAX) }
}

/**
 * The form-urlencoded parameters of a query (docs/protocol.md "Query parameters"). Unknown ones are ignored.
 * Bytes that are not UTF-8 become U+FFFD.
 */
export class QueryParameters {
  readonly #parameters: URLSearchParams

  /** Parses a query with or without its question mark. */
  constructor(search: string) {
    this.#parameters = new URLSearchParams(search)
  }

  /** The value, or undefined if it is absent. Throws 400 `bad_query` if it occurs twice. */
  text(name: string): string | undefined {
    const values = this.#parameters.getAll(name)
    if (values.length > 1) throw badQuery(`parameter \`${name}\` is given more than once`, name)
    return values[0]
  }

  /** `true` or `false`, or undefined if it is absent. Throws 400 `bad_query` for anything else. */
  boolean(name: string): boolean | undefined {
    const text = this.text(name)
    if (text === undefined) return undefined
    if (text === 'true' || text === 'false') return text === 'true'
    throw badQuery(`parameter \`${name}\` must be true or false`, name)
  }

  /** An unsigned decimal of at most `max`, rounded beyond 2^53 - 1. Throws 400 `bad_query` for others. */
  integer(name: string, max?: number): number | undefined {
    const text = this.text(name)
    if (text === undefined) return undefined
    const digits = /^0*([0-9]{1,20})$/.exec(text)?.[1]
    if (digits === undefined || BigInt(digits) > BigInt(max ?? UINT64_MAX)) {
      throw badQuery(`parameter \`${name}\` must be an integer from 0 to ${max ?? UINT64_MAX}`, name)
    }
    return Number(digits)
  }
}

const UINT64_MAX = 0xffff_ffff_ffff_ffffn

function badQuery(message: string, field: string): HeadwaterError {
  return new HeadwaterError('bad_query', message, { field })
}

/**
 * Decodes the query of a metrics request for one of these sets (docs/protocol.md "Metrics queries"). Throws
 * 400 `bad_query`. The engine rejects missing times.
 */
export function decodeMetricsQuery<Set extends MetricSet>(
  search: string,
  sets: readonly Set[],
): MetricsQuery<Set> {
  const parameters = new QueryParameters(search)
  const oneOf = <Value extends string>(name: string, allowed: readonly Value[]): Value | undefined => {
    const text = parameters.text(name)
    const value = allowed.find((candidate) => candidate === text)
    if (text !== undefined && value === undefined) {
      throw badQuery(`parameter \`${name}\` must be one of ${allowed.join(', ')}`, name)
    }
    return value
  }
  const milliseconds = (name: string) => {
    const seconds = parameters.integer(name, SECONDS_MAX)
    return seconds === undefined ? undefined : seconds * 1000
  }
  const set = oneOf('set', sets)
  if (set === undefined) throw badQuery('missing parameter `set`', 'set')
  return {
    set,
    start: milliseconds('start'),
    end: milliseconds('end'),
    interval: oneOf('interval', METRIC_INTERVALS),
  }
}

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
  const most = kind === 'unary' ? UNARY_WAIT_MS_MAX / 1000 : SECONDS_MAX
  return Math.min(Math.ceil(waitMs / 1000), most)
}

function boundOf(value: number | undefined): number | string | undefined {
  return value !== undefined && value > INTEGER_MAX ? UNBOUNDED : value
}

export function listQueryParts({ prefix, startAfter, limit }: ListQuery): QueryParts {
  return { prefix: prefix || undefined, start_after: startAfter || undefined, limit: listLimit(limit) }
}

/** Encodes the query of metrics. Times are rounded to the seconds that contain the range. */
export function metricsQueryParts({ set, start, end, interval }: MetricsQuery): QueryParts {
  const seconds = (time: Time | undefined, round: (value: number) => number) =>
    time === undefined ? undefined : round(millisecondsOf(time) / 1000)
  return { set, start: seconds(start, Math.floor), end: seconds(end, Math.ceil), interval }
}
