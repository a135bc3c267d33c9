import {
  lastMeasurements,
  type MetricsLevel,
  type MetricsPlan,
  planMetrics,
  totals,
} from '../core/usage/metrics-plan.ts'
import { hourOf, wasActive } from '../core/usage/sampling.ts'
import {
  chunksBetween,
  HOURS,
  METERED_SIZE,
  MINUTES,
  pointsOf,
  seriesName,
  type Tier,
  type UsagePoint,
} from '../core/usage/tiers.ts'
import type { MetricsService, UsageContext } from '../engine/service/usage.ts'
import { assertValid } from '../model/errors.ts'
import type {
  AccountMetricSet,
  BasinMetricSet,
  Metric,
  MetricsQuery,
  MetricUnit,
  StreamMetricSet,
} from '../model/metrics.ts'
import type { StreamRef } from '../model/names.ts'
import { basinNameProblem, streamNameProblem } from '../model/names.ts'
import { OPERATIONS } from '../model/operations.ts'
import { macrotask } from '../runtime/macrotask.ts'
import { type BasinDocument, type StreamDocument, streamKey } from '../storage/documents.ts'
import { ACCOUNT, ACTIVITY_PREFIX, type ActivityDocument, basinScope, logScope } from './documents.ts'
import { BasinSize, readChunks, readMeasurements } from './stored-usage.ts'

const ACTIVITIES_PER_PAGE = 1_000

/** Work that a query requires to be complete before it reads. */
interface Preparation {
  /** Stores what this engine recorded. */
  flush(): Promise<void>
  /** Moves all usage to the tier of its age. */
  rollUp(): Promise<void>
  /** Samples the basins for the current hour. */
  sample(): Promise<void>
}

type AccumulationSet = 'account-ops' | Exclude<BasinMetricSet, 'storage'>

/** The unit and the metrics of each set; undefined for one metric per operation that occurred. */
const ACCUMULATIONS: Readonly<Record<AccumulationSet, readonly [MetricUnit, readonly string[] | undefined]>> =
  {
    'account-ops': ['operations', undefined],
    'basin-ops': ['operations', undefined],
    'append-ops': ['operations', ['standard', 'express']],
    'append-throughput': ['bytes', ['standard', 'express']],
    'read-ops': ['operations', ['unary', 'streaming']],
    'read-throughput': ['bytes', ['read_bytes']],
  }

/** Answers metrics queries from stored usage. */
export class UsageMetrics implements MetricsService {
  readonly #context: UsageContext
  readonly #prepare: Preparation

  constructor(context: UsageContext, prepare: Preparation) {
    this.#context = context
    this.#prepare = prepare
  }

  async account(query: MetricsQuery<AccountMetricSet>): Promise<readonly Metric[]> {
    const plan = this.#plan('account', query)
    const { set } = query
    return set === 'account-ops' ? this.#accumulations(set, ACCOUNT, plan) : this.#activeBasins(plan)
  }

  async basin(basin: string, query: MetricsQuery<BasinMetricSet>): Promise<readonly Metric[]> {
    assertValid(basinNameProblem(basin), 'basin')
    const plan = this.#plan('basin', query)
    const { set } = query
    return set === 'storage'
      ? this.#basinStorage(basin, plan)
      : this.#accumulations(set, basinScope(basin), plan)
  }

  async stream(ref: StreamRef, query: MetricsQuery<StreamMetricSet>): Promise<readonly Metric[]> {
    assertValid(basinNameProblem(ref.basin), 'basin')
    assertValid(streamNameProblem(ref.stream), 'stream')
    return this.#streamStorage(ref, this.#plan('stream', query))
  }

  #plan(level: MetricsLevel, query: MetricsQuery): MetricsPlan {
    return planMetrics(level, query, this.#now())
  }

  async #accumulations(set: AccumulationSet, scope: string, plan: MetricsPlan): Promise<readonly Metric[]> {
    await this.#prepare.flush()
    const { from, to, tier } = plan
    const chunks = await this.#readRolledUp((now) =>
      readChunks(this.#context.session, scope, chunksBetween(from, to, tier, now)),
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
    const document = await this.#context.session.get('streams', streamKey(basin, stream))
    if (document === undefined) return [gauge([])]
    const { logId } = document.value as unknown as StreamDocument
    await this.#prepare.flush()
    const points = await this.#measurements(logScope(logId), MINUTES, plan)
    const until = this.#now()
    const [size] = until >= plan.from ? await this.#context.session.measure([logId]) : []
    return [gauge(lastMeasurements(size === undefined ? points : [...points, [until, size]], plan, until))]
  }

  async #basinStorage(basin: string, plan: MetricsPlan): Promise<readonly Metric[]> {
    await this.#prepare.flush()
    await this.#prepare.sample()
    const document = await this.#context.session.get('basins', basin)
    const found = document?.value as unknown as BasinDocument | undefined
    const exists = found !== undefined
    // Excludes measurements of an earlier basin with the same name.
    const since = exists ? Math.floor(found.createdAt / 1000) : 0
    const points = await this.#measurements(basinScope(basin), HOURS, plan, since)
    // A deleted basin has no values after its last measurement, instead of repeating it.
    const until = exists ? this.#now() : Math.max(-1, ...points.map(([time]) => time))
    if (!exists || plan.to <= hourOf(until) * HOURS.bucketSeconds || until < plan.from) {
      return [gauge(lastMeasurements(points, plan, until))]
    }
    const size = new BasinSize(this.#context, basin)
    while (await size.step()) await macrotask()
    return [gauge(lastMeasurements([...points, [until, size.bytes]], plan, until))]
  }

  async #activeBasins({ from, to }: MetricsPlan): Promise<readonly Metric[]> {
    await this.#prepare.flush()
    await this.#prepare.sample()
    const values: string[] = []
    let after = ''
    for (;;) {
      const range = { prefix: ACTIVITY_PREFIX, after, limit: ACTIVITIES_PER_PAGE }
      const page = await this.#context.session.list('usage', range)
      for (const { key, value } of page) {
        const { runs } = value as unknown as ActivityDocument
        if (wasActive(runs, from, to)) values.push(key.slice(ACTIVITY_PREFIX.length))
      }
      if (page.length < ACTIVITIES_PER_PAGE) return [{ kind: 'label', name: 'active_basins', values }]
      after = page.at(-1)!.key
      await macrotask()
    }
  }

  /**
   * Reads the measurements in the intervals of a query, from `since` (seconds) on, and the last one before
   * them.
   */
  #measurements(
    scope: string,
    finest: Tier,
    { from, to, seconds }: MetricsPlan,
    since = 0,
  ): Promise<UsagePoint[]> {
    const range = { finest, since, to, stopBefore: from + seconds }
    return this.#readRolledUp((now) => readMeasurements(this.#context.session, scope, range, now))
  }

  /**
   * Reads usage after a roll-up. Repeats both if an hour ended meanwhile: another engine may then have moved
   * documents, which the read would count twice or miss.
   */
  async #readRolledUp<Result>(read: (now: number) => Promise<Result>): Promise<Result> {
    for (;;) {
      await this.#prepare.rollUp()
      const now = this.#now()
      const result = await read(now)
      if (hourOf(this.#now()) === hourOf(now)) return result
    }
  }

  #now(): number {
    return Math.floor(this.#context.clock.now() / 1000)
  }
}

function gauge(values: readonly UsagePoint[]): Metric {
  return { kind: 'gauge', name: METERED_SIZE, unit: 'bytes', values }
}
