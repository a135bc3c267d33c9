import { METRIC_INTERVALS, type MetricSet, type MetricsQuery } from '../model/metrics.ts'
import { badQuery, QueryParameters } from './query-parameters.ts'

/** Times are unsigned 32-bit numbers of seconds. */
const SECONDS_MAX = 0xff_ff_ff_ff

/**
 * Decodes the query of a metrics request for one of these sets (wire-behaviour.md 11.1). Throws 400 `bad_query`; that a time is missing is left to
 * the engine.
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
  const set = oneOf('set', sets)
  if (set === undefined) throw badQuery('missing parameter `set`', 'set')
  return {
    set,
    start: parameters.integer('start', SECONDS_MAX),
    end: parameters.integer('end', SECONDS_MAX),
    interval: oneOf('interval', METRIC_INTERVALS),
  }
}
