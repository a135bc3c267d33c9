import { listLimit } from '../core/listing.ts'
import type { ListQuery } from '../model/info.ts'
import type { MetricsQuery } from '../model/metrics.ts'
import { millisecondsOf, type Time } from '../model/validation.ts'
import type { QueryParts } from './encode-query.ts'

/** Encodes the query of a list. */
export function listQueryParts({ prefix, startAfter, limit }: ListQuery): QueryParts {
  return { prefix: prefix || undefined, start_after: startAfter || undefined, limit: listLimit(limit) }
}

/** Encodes the query of metrics. Times are rounded to the seconds that contain the range. */
export function metricsQueryParts({ set, start, end, interval }: MetricsQuery): QueryParts {
  const seconds = (time: Time | undefined, round: (value: number) => number) =>
    time === undefined ? undefined : round(millisecondsOf(time) / 1000)
  return { set, start: seconds(start, Math.floor), end: seconds(end, Math.ceil), interval }
}
