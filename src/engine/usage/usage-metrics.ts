import { hourOf, wasActive } from '../../core/usage/activity.ts'
import { type MetricsLevel, type MetricsPlan, planMetrics } from '../../core/usage/metrics-plan.ts'
import { lastMeasurements, totals } from '../../core/usage/points.ts'
import { METERED_SIZE, pointsOf, seriesName } from '../../core/usage/series.ts'
import { chunksBetween, HOURS, MINUTES, type Tier } from '../../core/usage/tiers.ts'
import { refuse } from '../../model/errors.ts'
import type {
  AccountMetricSet,
  BasinMetricSet,
  Metric,
  MetricPoint,
  MetricsQuery,
  MetricUnit,
  StreamMetricSet,
} from '../../model/metrics.ts'
import { basinNameProblem, streamNameProblem } from '../../model/names.ts'
import { OPERATIONS } from '../../model/operations.ts'
import type { StreamRef } from '../context.ts'
import { storageError } from '../errors.ts'
import { macrotask } from '../macrotask.ts'
import type { MetricsService } from '../services.ts'
import { BasinSize } from './basin-size.ts'
import { readChunks, readMeasurements } from './stored-usage.ts'
import { ACCOUNT, ACTIVITY_PREFIX, type ActivityDocument, basinScope, logScope } from './usage-documents.ts'
import type { UsageEngine } from './usage-flush.ts'

const ACTIVITIES_OF_PAGE = 1_000

/** What a query needs to have done before it looks. */
export interface Preparation {
  /** What this engine recorded is stored. */
  flush(): Promise<void>
  /** Everything is in the tier where it belongs by now. */
  rollUp(): Promise<void>
  /** The basins were looked at in this hour. */
  sample(): Promise<void>
}

type Accumulated = 'account-ops' | Exclude<BasinMetricSet, 'storage'>

/** What the accumulations of a set are called, and what they count; undefined: those of the operations that were done. */
const ACCUMULATIONS: Readonly<Record<Accumulated, readonly [MetricUnit, readonly string[] | undefined]>> = {
  'account-ops': ['operations', undefined],
  'basin-ops': ['operations', undefined],
  'append-ops': ['operations', ['standard', 'express']],
  'append-throughput': ['bytes', ['standard', 'express']],
  'read-ops': ['operations', ['unary', 'streaming']],
  'read-throughput': ['bytes', ['read_bytes']],
}

/** Answers what usage is asked for (wire-behaviour.md 11). */
export class UsageMetrics implements MetricsService {
  readonly #engine: UsageEngine
  readonly #prepare: Preparation

  constructor(engine: UsageEngine, prepare: Preparation) {
    this.#engine = engine
    this.#prepare = prepare
  }

  async account(query: MetricsQuery<AccountMetricSet>): Promise<readonly Metric[]> {
    const plan = this.#plan('account', query)
    const { set } = query
    return storageError(
      set === 'account-ops' ? this.#accumulations(set, ACCOUNT, plan) : this.#activeBasins(plan),
    )
  }

  async basin(basin: string, query: MetricsQuery<BasinMetricSet>): Promise<readonly Metric[]> {
    refuse(basinNameProblem(basin), 'basin')
    const plan = this.#plan('basin', query)
    const { set } = query
    return storageError(
      set === 'storage' ? this.#basinStorage(basin, plan) : this.#accumulations(set, basinScope(basin), plan),
    )
  }

  async stream(ref: StreamRef, query: MetricsQuery<StreamMetricSet>): Promise<readonly Metric[]> {
    refuse(basinNameProblem(ref.basin), 'basin')
    refuse(streamNameProblem(ref.stream), 'stream')
    return storageError(this.#streamStorage(ref, this.#plan('stream', query)))
  }

  #plan(level: MetricsLevel, query: MetricsQuery): MetricsPlan {
    return planMetrics(level, query, this.#now())
  }

  async #accumulations(set: Accumulated, scope: string, plan: MetricsPlan): Promise<readonly Metric[]> {
    await this.#prepare.flush()
    const { from, to, tier } = plan
    const chunks = await this.#inItsTier((now) =>
      readChunks(this.#engine.session, scope, chunksBetween(from, to, tier, now)),
    )
    const [unit, fixed] = ACCUMULATIONS[set]
    const accumulations = (fixed ?? OPERATIONS).map((name) => {
      const points = chunks.flatMap((chunk) => pointsOf(chunk.series, seriesName(set, name), chunk))
      return {
        kind: 'accumulation',
        name,
        unit,
        interval: tier.interval,
        values: totals(points, plan),
      } as const
    })
    return fixed ? accumulations : accumulations.filter(({ values }) => values.length > 0)
  }

  async #streamStorage({ basin, stream }: StreamRef, plan: MetricsPlan): Promise<readonly Metric[]> {
    const document = await this.#engine.catalog.stream(basin, stream)
    if (document === undefined) return [gauge([])]
    const { logId } = document.value
    await this.#prepare.flush()
    const points = await this.#measurements(logScope(logId), MINUTES, plan)
    const until = this.#now()
    const [size] = until >= plan.from ? await this.#engine.session.measure([logId]) : []
    return [gauge(lastMeasurements(size === undefined ? points : [...points, [until, size]], plan, until))]
  }

  async #basinStorage(basin: string, plan: MetricsPlan): Promise<readonly Metric[]> {
    await this.#prepare.flush()
    await this.#prepare.sample()
    const document = await this.#engine.catalog.basin(basin)
    const exists = document !== undefined
    // What another basin held that had the name before says nothing of the time since.
    const since = exists ? Math.floor(document.value.createdAt / 1000) : 0
    const points = await this.#measurements(basinScope(basin), HOURS, plan, since)
    // Of a basin that is gone nothing is held any more, whatever was measured last.
    const until = exists ? this.#now() : Math.max(-1, ...points.map(([time]) => time))
    if (!exists || plan.to <= hourOf(until) * HOURS.bucketSeconds || until < plan.from) {
      return [gauge(lastMeasurements(points, plan, until))]
    }
    const size = new BasinSize(this.#engine, basin)
    while (await size.step()) await macrotask()
    return [gauge(lastMeasurements([...points, [until, size.bytes]], plan, until))]
  }

  async #activeBasins({ from, to }: MetricsPlan): Promise<readonly Metric[]> {
    await this.#prepare.flush()
    await this.#prepare.sample()
    const values: string[] = []
    let after = ''
    for (;;) {
      const range = { prefix: ACTIVITY_PREFIX, after, limit: ACTIVITIES_OF_PAGE }
      const page = await this.#engine.session.list('usage', range)
      for (const { key, value } of page) {
        const { runs } = value as unknown as ActivityDocument
        if (wasActive(runs, from, to)) values.push(key.slice(ACTIVITY_PREFIX.length))
      }
      if (page.length < ACTIVITIES_OF_PAGE) return [{ kind: 'label', name: 'active_basins', values }]
      after = page.at(-1)!.key
      await macrotask()
    }
  }

  /** The measurements in the intervals of a query since a time in seconds, and the last one before them. */
  #measurements(
    scope: string,
    finest: Tier,
    { from, to, seconds }: MetricsPlan,
    since = 0,
  ): Promise<MetricPoint[]> {
    const range = { finest, since, to, enough: from + seconds }
    return this.#inItsTier((now) => readMeasurements(this.#engine.session, scope, range, now))
  }

  /** Looks where things are at a time; again when they may have been moved meanwhile, for then some would be seen twice, or not at all. */
  async #inItsTier<Result>(look: (now: number) => Promise<Result>): Promise<Result> {
    for (;;) {
      await this.#prepare.rollUp()
      const now = this.#now()
      const result = await look(now)
      if (hourOf(this.#now()) === hourOf(now)) return result
    }
  }

  #now(): number {
    return Math.floor(this.#engine.settings.clock.now() / 1000)
  }
}

function gauge(values: readonly MetricPoint[]): Metric {
  return { kind: 'gauge', name: METERED_SIZE, unit: 'bytes', values }
}
