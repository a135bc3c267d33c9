import { invalid } from '../../src/model/errors.ts'
import {
  ACCOUNT_METRIC_SETS,
  BASIN_METRIC_SETS,
  METRIC_INTERVALS,
  type MetricsQuery,
  STREAM_METRIC_SETS,
} from '../../src/model/metrics.ts'
import {
  assertMembers,
  type Check,
  type MembersOf,
  millisecondsOf,
  oneOf,
  type Time,
} from '../../src/model/validation.ts'

const SETS = { account: ACCOUNT_METRIC_SETS, basin: BASIN_METRIC_SETS, stream: STREAM_METRIC_SETS }

const isTime: Check = (value, field) => {
  const ms = millisecondsOf(value as Time)
  if (!(ms >= 0 && ms < 2 ** 32 * 1000)) {
    throw invalid(`\`${field}\` must be a Date or milliseconds since the Unix epoch`, field)
  }
}

const METRICS_QUERY: MembersOf<MetricsQuery> = {
  set: 'string',
  start: isTime,
  end: isTime,
  interval: oneOf(METRIC_INTERVALS),
}

/** Throws `invalid` for a query that has no form on the wire. The server checks the rest. */
export function assertMetricsQuery(level: keyof typeof SETS, query: MetricsQuery): void {
  assertMembers(query, METRICS_QUERY, 'query')
  oneOf(SETS[level])(query.set, 'set')
  for (const field of ['start', 'end'] as const) {
    if (query[field] === undefined) throw invalid(`\`${field}\` is required`, field)
  }
}
