import {
  alignDown,
  bucketOf,
  chunkAt,
  DAY_SECONDS,
  DAYS,
  MINUTE_SECONDS,
  type SeriesOfChunk,
  type Tier,
  type TierChunk,
  tierAt,
} from '../core/usage/tiers.ts'
import { type ScopeChunk, usageKey } from './documents.ts'

/** The usage to add to one document. */
export interface UsageDelta extends ScopeChunk {
  readonly key: string
  readonly series: SeriesOfChunk
}

type BySeries = Map<string, Map<number, number>>
type ByScope = Map<string, BySeries>
type Buckets = Record<string, number>
type Deltas = Map<string, UsageDelta & { readonly series: Record<string, Buckets> }>

/**
 * Above this number, values are kept by day, so that a storage that fails for a long time does not exhaust
 * the memory.
 */
const VALUES_MAX = 100_000

/** Usage that is not stored yet, added up by scope, series and minute. */
export class PendingUsage {
  readonly #valuesMax: number
  #minutes: ByScope = new Map()
  #days: ByScope = new Map()
  /** The number of values by minute. */
  #values = 0

  constructor(valuesMax: number = VALUES_MAX) {
    this.#valuesMax = valuesMax
  }

  get isEmpty(): boolean {
    return this.#values === 0 && this.#days.size === 0
  }

  /** The number of values, by minute and by day. */
  get size(): number {
    let size = this.#values
    for (const bySeries of this.#days.values()) for (const values of bySeries.values()) size += values.size
    return size
  }

  /** `time` is in seconds. */
  add(scope: string, series: string, time: number, value: number): void {
    if (this.#values >= this.#valuesMax) this.#coarsen()
    if (addValue(this.#minutes, scope, series, alignDown(time, MINUTE_SECONDS), value)) this.#values++
  }

  /** Removes and returns everything. */
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
          addValue(this.#days, scope, series, alignDown(time, DAY_SECONDS), value)
      }
    }
    this.#minutes = new Map()
    this.#values = 0
  }
}

/** Adds to a value. Returns whether it is new. */
function addValue(scopes: ByScope, scope: string, series: string, time: number, value: number): boolean {
  const values = getOrAdd(getOrAdd(scopes, scope), series)
  const before = values.get(time)
  values.set(time, (before ?? 0) + value)
  return before === undefined
}

function collect(deltas: Deltas, scopes: ByScope, tierOf: (time: number) => Tier): void {
  for (const [scope, bySeries] of scopes) {
    for (const [series, values] of bySeries) {
      let current: TierChunk | undefined
      let buckets: Buckets = {}
      for (const [time, value] of values) {
        const at = chunkAt(time, tierOf(time))
        // Consecutive values usually belong to the same document.
        if (current === undefined || at.chunk !== current.chunk || at.tier !== current.tier) {
          current = at
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
