import { DAY_SECONDS, DAYS, HOUR_SECONDS, HOURS, keptFrom } from './tiers.ts'

/** From the first to the last hour, both included, in which a basin had a stream; hours since the Unix epoch. */
export type HoursRun = readonly [first: number, last: number]

/** When a basin had at least one stream: ascending runs without hours in common, and with gaps between them. Persisted: keep stable. */
export type Activity = readonly HoursRun[]

const HOURS_OF_DAY = DAY_SECONDS / HOUR_SECONDS

export function hourOf(time: number): number {
  return Math.floor(time / HOUR_SECONDS)
}

export function addRun(activity: Activity, run: HoursRun): Activity {
  const merged: HoursRun[] = []
  for (const [first, last] of [...activity, run].sort(([a], [b]) => a - b)) {
    const previous = merged.at(-1)
    if (previous === undefined || first > previous[1] + 1) merged.push([first, last])
    else merged[merged.length - 1] = [previous[0], Math.max(previous[1], last)]
  }
  return merged
}

/** Bounds what is kept: whole days of what is older than the hours tier, nothing of what is older than the days tier. */
export function thinActivity(activity: Activity, now: number): Activity {
  const hoursFrom = keptFrom(HOURS, now) / HOUR_SECONDS
  const daysFrom = keptFrom(DAYS, now) / HOUR_SECONDS
  let thinned: Activity = []
  for (const [first, last] of activity) {
    if (last < daysFrom) continue
    const from = Math.max(daysFrom, first < hoursFrom ? first - (first % HOURS_OF_DAY) : first)
    const to = last < hoursFrom ? last - (last % HOURS_OF_DAY) + HOURS_OF_DAY - 1 : last
    thinned = addRun(thinned, [from, to])
  }
  return thinned
}

/** Whether there was a stream in an hour that begins in `[from, to)`; seconds, `from` the beginning of an hour. */
export function wasActive(activity: Activity, from: number, to: number): boolean {
  return activity.some(([first, last]) => first * HOUR_SECONDS < to && last * HOUR_SECONDS >= from)
}
