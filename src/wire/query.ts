import { invalid } from '../model/errors.ts'
import type { ListQuery } from '../model/info.ts'
import { checkInteger } from '../model/integers.ts'
import { LIST_LIMIT_MAX, WAIT_SECONDS_MAX } from '../model/limits.ts'
import type { NameRole } from '../model/names.ts'
import type { ReadQuery } from '../model/read-query.ts'
import { badQuery, QueryParameters } from './query-parameters.ts'

/**
 * Decodes the query of a read (wire-behaviour.md 5.1). Throws 400 `bad_query` for what is malformed, then 422 `invalid` for a start
 * beyond 2^53 - 1 and for more than one start. Other numbers beyond it are `Infinity`, since they can only mean everything. That `timestamp` lies before `until` is left to `checkReadQuery`, because a
 * resumed SSE read replaces the start in between.
 */
export function decodeReadQuery(search: string): ReadQuery {
  const parameters = new QueryParameters(search)
  const query = {
    seqNum: parameters.integer('seq_num'),
    timestamp: parameters.integer('timestamp'),
    tailOffset: parameters.integer('tail_offset'),
    clamp: parameters.boolean('clamp'),
    count: parameters.integer('count'),
    bytes: parameters.integer('bytes'),
    until: parameters.integer('until'),
    waitSeconds: parameters.integer('wait', WAIT_SECONDS_MAX),
  }
  const { seqNum, timestamp, tailOffset } = query
  if ([seqNum, timestamp, tailOffset].filter((start) => start !== undefined).length > 1) {
    throw invalid('only one of seq_num, timestamp, or tail_offset can be provided', 'seq_num')
  }
  if (seqNum !== undefined) checkInteger(seqNum, 'seq_num')
  if (timestamp !== undefined) checkInteger(timestamp, 'timestamp')
  return query
}

/** What is wrong with a `prefix` or `start_after` of a kind of name: `basinPrefixProblem`, `streamPrefixProblem`. */
export type PrefixRule = (text: string, role: NameRole) => string | undefined

/** Decodes the query of a list (wire-behaviour.md 1.8). Throws 400 `bad_query`. */
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
