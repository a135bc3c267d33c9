import { invalid } from '../../model/errors.ts'
import { METRICS_RANGE_SECONDS_MAX, SECONDS_MAX } from '../../model/limits.ts'
import {
  ACCOUNT_METRIC_SETS,
  BASIN_METRIC_SETS,
  type MetricInterval,
  type MetricPoint,
  type MetricSet,
  type MetricsQuery,
  STREAM_METRIC_SETS,
} from '../../model/metrics.ts'
import {
  assertMembers,
  type MembersOf,
  millisecondsOf,
  type Time,
  unchecked,
} from '../../model/validation.ts'
import {
  alignDown,
  BY_DAY,
  HOUR_SECONDS,
  keptFrom,
  RESOLUTIONS,
  type Resolution,
  type UsagePoint,
} from './resolutions.ts'

export type MetricsLevel = 'account' | 'basin' | 'stream'

const SETS: Readonly<Record<MetricsLevel, readonly MetricSet[]>> = {
  account: ACCOUNT_METRIC_SETS,
  basin: BASIN_METRIC_SETS,
  stream: STREAM_METRIC_SETS,
}

/** Tolerates callers whose clocks are ahead. */
const FUTURE_SECONDS_MAX = 300

const METRICS_QUERY: MembersOf<MetricsQuery> = {
  set: unchecked,
  start: unchecked,
  end: unchecked,
  interval: unchecked,
}

export interface MetricsPlan extends Intervals {
  /** The resolution to read: coarser than requested if that is no longer kept at the start of the range. */
  readonly resolution: Resolution
}

/**
 * Decides how to answer a query (docs/protocol.md "Metrics queries"). `now` is in seconds. Throws
 * `invalid` for a set or interval that the level does not have, and for bounds that are missing, invalid,
 * reversed, in the future or more than 30 days apart.
 */
export function planMetrics(level: MetricsLevel, query: MetricsQuery, now: number): MetricsPlan {
  assertMembers(query, METRICS_QUERY, 'query')
  const { set } = query
  if (!SETS[level].includes(set)) throw invalid(`\`set\` must be one of ${SETS[level].join(', ')}`, 'set')
  const [start, end] = boundsOf(query, now)
  const resolution = coveringResolution(intervalOf(level, query), start, now)
  const seconds = set === 'active-basins' ? HOUR_SECONDS : resolution.bucketSeconds
  // An empty range selects the interval that contains it.
  const last = Math.max(end - 1, start)
  return { resolution, from: alignDown(start, seconds), to: alignDown(last, seconds) + seconds, seconds }
}

/** The bounds in whole seconds that contain the range. */
function boundsOf(query: MetricsQuery, now: number): readonly [start: number, end: number] {
  if (query.start === undefined || query.end === undefined) {
    const field = query.start === undefined ? 'start' : 'end'
    throw invalid(`start and end params required for ${query.set}`, field)
  }
  const start = Math.floor(secondsOf(query.start, 'start'))
  const end = Math.ceil(secondsOf(query.end, 'end'))
  if (start > end) throw invalid('`start` must not be after `end`', 'start')
  if (end > now + FUTURE_SECONDS_MAX) {
    throw invalid(`\`end\` must not be more than ${FUTURE_SECONDS_MAX} seconds in the future`, 'end')
  }
  if (end - start > METRICS_RANGE_SECONDS_MAX) {
    throw invalid(`\`end\` must not be more than ${METRICS_RANGE_SECONDS_MAX} seconds after \`start\``, 'end')
  }
  return [start, end]
}

function secondsOf(time: Time, field: string): number {
  const seconds = millisecondsOf(time) / 1000
  if (seconds >= 0 && seconds <= SECONDS_MAX) return seconds
  throw invalid(`\`${field}\` must be a time from 1970 to 2106`, field)
}

function intervalOf(level: MetricsLevel, { set, interval }: MetricsQuery): MetricInterval {
  if (set === 'active-basins') return 'hour'
  const allowed = intervalsOf(level, set)
  if (interval === undefined) return allowed[0]
  if (!allowed.includes(interval)) {
    throw invalid(`\`interval\` of ${set} of a ${level} must be one of ${allowed.join(', ')}`, 'interval')
  }
  return interval
}

/** The finest resolution, from the interval's on, that is kept since `start`; the coarsest if none is. */
function coveringResolution(interval: MetricInterval, start: number, now: number): Resolution {
  const requested = RESOLUTIONS.findIndex((resolution) => resolution.interval === interval)
  const coarser = RESOLUTIONS.slice(requested)
  return coarser.find((resolution) => start >= keptFrom(resolution, now)) ?? BY_DAY
}

/** The intervals of a set, the default first. */
function intervalsOf(level: MetricsLevel, set: MetricSet): readonly [MetricInterval, ...MetricInterval[]] {
  if (set === 'storage') return level === 'basin' ? ['hour'] : ['minute']
  return set === 'account-ops' || set === 'basin-ops' ? ['hour', 'minute', 'day'] : ['minute', 'hour', 'day']
}

/** The intervals of a query, in seconds since the Unix epoch. */
export interface Intervals {
  readonly from: number
  readonly to: number
  readonly seconds: number
}

/** The totals of intervals that are not 0. */
export function totals(points: Iterable<UsagePoint>, { from, to, seconds }: Intervals): MetricPoint[] {
  const byTime = new Map<number, number>()
  for (const [time, value] of points) {
    const start = alignDown(time, seconds)
    if (start >= from && start < to) byTime.set(start, (byTime.get(start) ?? 0) + value)
  }
  return [...byTime]
    .filter(([, value]) => value !== 0)
    .sort(([a], [b]) => a - b)
    .map(([start, value]) => [start * 1000, value])
}

/**
 * The last measurement of each interval, or the latest one before an interval without any. Begins with the
 * first interval that has one and ends with the interval that contains `until`, in seconds.
 */
export function lastMeasurements(
  points: readonly UsagePoint[],
  { from, to, seconds }: Intervals,
  until: number,
): MetricPoint[] {
  const ascending = [...points].sort(([a], [b]) => a - b)
  const values: MetricPoint[] = []
  let last: number | undefined
  let next = 0
  for (let start = from; start < to && start <= until; start += seconds) {
    while (next < ascending.length && ascending[next]![0] < start + seconds) last = ascending[next++]![1]
    if (last !== undefined) values.push([start * 1000, last])
  }
  return values
}
