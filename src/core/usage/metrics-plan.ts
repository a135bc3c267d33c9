import { invalid } from '../../model/errors.ts'
import { METRICS_RANGE_SECONDS_MAX } from '../../model/limits.ts'
import {
  ACCOUNT_METRIC_SETS,
  BASIN_METRIC_SETS,
  type MetricInterval,
  type MetricSet,
  type MetricsQuery,
  STREAM_METRIC_SETS,
} from '../../model/metrics.ts'
import type { Intervals } from './points.ts'
import { alignDown, coveringTier, HOUR_SECONDS, type Tier } from './tiers.ts'

export type MetricsLevel = 'account' | 'basin' | 'stream'

const SETS: Readonly<Record<MetricsLevel, readonly MetricSet[]>> = {
  account: ACCOUNT_METRIC_SETS,
  basin: BASIN_METRIC_SETS,
  stream: STREAM_METRIC_SETS,
}

/** How far into the future a query may reach, for clocks that are fast, in seconds. */
const FUTURE_SECONDS_MAX = 300
const TIME_MAX = 0xff_ff_ff_ff

export interface MetricsPlan extends Intervals {
  /** By whose buckets the query is answered: coarser than asked for when the finer ones of its start are not kept any more. */
  readonly tier: Tier
}

/**
 * What a query asks for (wire-behaviour.md 11.1 and 11.2). Throws 422 `invalid` for a set that the level does not have, bounds that are missing,
 * no unsigned 32-bit integers, the wrong way round, in the future or more than 30 days apart, and intervals that the set does not take.
 * `now` in seconds.
 */
export function planMetrics(level: MetricsLevel, query: MetricsQuery, now: number): MetricsPlan {
  const { set } = query
  if (!SETS[level].includes(set)) throw invalid(`set must be one of ${SETS[level].join(', ')}`, 'set')
  const [start, end] = boundsOf(query, now)
  const tier = coveringTier(intervalOf(level, query), start, now)
  const seconds = set === 'active-basins' ? HOUR_SECONDS : tier.bucketSeconds
  // A range without any time in it asks for the interval that it lies in.
  const last = Math.max(end - 1, start)
  return { tier, from: alignDown(start, seconds), to: alignDown(last, seconds) + seconds, seconds }
}

function boundsOf({ set, start, end }: MetricsQuery, now: number): readonly [start: number, end: number] {
  if (start === undefined || end === undefined) {
    throw invalid(`start and end params required for ${set}`, start === undefined ? 'start' : 'end')
  }
  checkTime(start, 'start')
  checkTime(end, 'end')
  if (start > end) throw invalid('start must not be after end', 'start')
  if (end > now + FUTURE_SECONDS_MAX) {
    throw invalid(`end must not be more than ${FUTURE_SECONDS_MAX} seconds in the future`, 'end')
  }
  if (end - start > METRICS_RANGE_SECONDS_MAX) {
    throw invalid(`end must not be more than ${METRICS_RANGE_SECONDS_MAX} seconds after start`, 'end')
  }
  return [start, end]
}

function checkTime(value: number, field: string): void {
  if (!Number.isInteger(value) || value < 0 || value > TIME_MAX) {
    throw invalid(`${field} must be an integer from 0 to ${TIME_MAX}`, field)
  }
}

function intervalOf(level: MetricsLevel, { set, interval }: MetricsQuery): MetricInterval {
  if (set === 'active-basins') return 'hour'
  const [byDefault, ...others] = intervalsOf(level, set)
  if (interval === undefined) return byDefault
  const taken = [byDefault, ...others]
  if (!taken.includes(interval)) {
    throw invalid(`interval of ${set} of a ${level} must be ${taken.join(', ')}`, 'interval')
  }
  return interval
}

/** Those that a set takes, its default first. */
function intervalsOf(level: MetricsLevel, set: MetricSet): readonly [MetricInterval, ...MetricInterval[]] {
  if (set === 'storage') return level === 'basin' ? ['hour'] : ['minute']
  return set === 'account-ops' || set === 'basin-ops' ? ['hour', 'minute', 'day'] : ['minute', 'hour', 'day']
}
