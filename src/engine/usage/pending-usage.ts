import { bucketOf, chunkAt, type SeriesOfChunk } from '../../core/usage/series.ts'
import {
  alignDown,
  DAY_SECONDS,
  DAYS,
  MINUTE_SECONDS,
  type Tier,
  type TierChunk,
  tierAt,
} from '../../core/usage/tiers.ts'
import { type UsagePlace, usageKey } from './usage-documents.ts'

/** What is to be added to one document. */
export interface UsageDelta extends UsagePlace {
  readonly key: string
  readonly series: SeriesOfChunk
}

type BySeries = Map<string, Map<number, number>>
type ByScope = Map<string, BySeries>
type Buckets = Record<string, number>
type Deltas = Map<string, UsageDelta & { readonly series: Record<string, Buckets> }>

/** More values than this are kept by day: what a storage that fails for long does not take must not fill the memory. */
const VALUES_MAX = 100_000

/** What was used and is not stored yet, by scope, series and minute. All of it adds up. */
export class PendingUsage {
  readonly #valuesMax: number
  #minutes: ByScope = new Map()
  #days: ByScope = new Map()
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

  /** Time in seconds. */
  add(scope: string, series: string, time: number, value: number): void {
    if (this.#values >= this.#valuesMax) this.#coarsen()
    if (put(this.#minutes, scope, series, alignDown(time, MINUTE_SECONDS), value)) this.#values++
  }

  /** Hands everything over, and is empty. */
  take(now: number): UsageDelta[] {
    const deltas: Deltas = new Map()
    collect(deltas, this.#days, () => DAYS)
    collect(deltas, this.#minutes, (time) => tierAt(time, now))
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
function put(scopes: ByScope, scope: string, series: string, time: number, value: number): boolean {
  const values = getOrAdd(getOrAdd(scopes, scope), series)
  const before = values.get(time)
  values.set(time, (before ?? 0) + value)
  return before === undefined
}

function collect(deltas: Deltas, scopes: ByScope, tierOf: (time: number) => Tier): void {
  for (const [scope, bySeries] of scopes) {
    for (const [series, values] of bySeries) {
      let place: TierChunk | undefined
      let buckets: Buckets = {}
      for (const [time, value] of values) {
        const at = chunkAt(time, tierOf(time))
        // Neighbours are in the same document as a rule.
        if (place === undefined || at.chunk !== place.chunk || at.tier !== place.tier) {
          place = at
          buckets = bucketsOf(deltas, at, scope, series)
        }
        const bucket = bucketOf(time, at)
        buckets[bucket] = (buckets[bucket] ?? 0) + value
      }
    }
  }
}

function bucketsOf(deltas: Deltas, at: TierChunk, scope: string, series: string): Buckets {
  const key = usageKey(at, scope)
  let delta = deltas.get(key)
  if (delta === undefined) {
    delta = { key, at, scope, series: {} }
    deltas.set(key, delta)
  }
  delta.series[series] ??= {}
  return delta.series[series]
}

function getOrAdd<Key, Value>(maps: Map<string, Map<Key, Value>>, key: string): Map<Key, Value> {
  let map = maps.get(key)
  if (map === undefined) {
    map = new Map()
    maps.set(key, map)
  }
  return map
}
