import { bucketOf, chunkAt, mergeSeries, type SeriesOfChunk, STORED_BYTES } from '../../core/usage/series.ts'
import { alignDown, DAY_SECONDS, DAYS, MINUTE_SECONDS, type Tier, tierAt } from '../../core/usage/tiers.ts'
import { type UsagePlace, usageKey } from './usage-documents.ts'

/** What is to be added to one document. */
export interface UsageDelta extends UsagePlace {
  readonly key: string
  readonly series: SeriesOfChunk
}

type BySeries = Map<string, Map<number, number>>

/** More values than this are kept by day: what a storage that fails for long does not take must not fill the memory. */
const VALUES_MAX = 100_000

/** What was used and is not stored yet, by scope, series and minute. */
export class PendingUsage {
  readonly #valuesMax: number
  #minutes = new Map<string, BySeries>()
  #days = new Map<string, BySeries>()
  /** How many values there are by minute. */
  #values = 0

  constructor(valuesMax: number = VALUES_MAX) {
    this.#valuesMax = valuesMax
  }

  get isEmpty(): boolean {
    return this.#values === 0 && this.#days.size === 0
  }

  /** How many values are held. */
  get size(): number {
    let size = this.#values
    for (const bySeries of this.#days.values()) for (const values of bySeries.values()) size += values.size
    return size
  }

  /** Time in seconds. A measurement takes the place of that of the same minute, anything else adds up. */
  add(scope: string, series: string, time: number, value: number): void {
    if (this.#values >= this.#valuesMax) this.#coarsen()
    if (put(this.#minutes, scope, series, alignDown(time, MINUTE_SECONDS), value)) this.#values++
  }

  /** Hands everything over, and is empty. */
  take(now: number): UsageDelta[] {
    const deltas = new Map<string, UsageDelta>()
    const collect = (from: ReadonlyMap<string, BySeries>, tierOf: (time: number) => Tier) => {
      for (const [scope, bySeries] of from) {
        for (const [series, values] of bySeries) {
          for (const [time, value] of values) {
            const at = chunkAt(time, tierOf(time))
            const key = usageKey(at, scope)
            const one = { [series]: { [bucketOf(time, at)]: value } }
            const delta = deltas.get(key)
            deltas.set(key, {
              key,
              at,
              scope,
              series: delta === undefined ? one : mergeSeries(delta.series, one),
            })
          }
        }
      }
    }
    collect(this.#days, () => DAYS)
    collect(this.#minutes, (time) => tierAt(time, now))
    this.#minutes = new Map()
    this.#days = new Map()
    this.#values = 0
    return [...deltas.values()]
  }

  #coarsen(): void {
    for (const [scope, bySeries] of this.#minutes) {
      for (const [series, values] of bySeries) {
        for (const [time, value] of values)
          put(this.#days, scope, series, alignDown(time, DAY_SECONDS), value)
      }
    }
    this.#minutes = new Map()
    this.#values = 0
  }
}

/** Returns whether there was none before. */
function put(
  scopes: Map<string, BySeries>,
  scope: string,
  series: string,
  time: number,
  value: number,
): boolean {
  const values = getOrAdd(getOrAdd(scopes, scope), series)
  const before = values.get(time)
  values.set(time, series === STORED_BYTES ? value : (before ?? 0) + value)
  return before === undefined
}

function getOrAdd<Key, Value>(maps: Map<string, Map<Key, Value>>, key: string): Map<Key, Value> {
  let map = maps.get(key)
  if (map === undefined) {
    map = new Map()
    maps.set(key, map)
  }
  return map
}
