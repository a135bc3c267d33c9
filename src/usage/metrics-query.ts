import {
  lastMeasurements,
  type MetricsLevel,
  type MetricsPlan,
  planMetrics,
  totals,
} from '../core/usage/metrics-plan.ts'
import {
  ACTIVE,
  BY_DAY,
  BY_HOUR,
  BY_MINUTE,
  chunksBetween,
  hourOf,
  keptFrom,
  METERED_SIZE,
  pointsOf,
  type Resolution,
  seriesName,
  type UsagePoint,
} from '../core/usage/resolutions.ts'
import type { MetricsService, UsageContext } from '../engine/service/usage.ts'
import { OPERATIONS } from '../model/access.ts'
import { assertValid } from '../model/errors.ts'
import type {
  AccountMetricSet,
  BasinMetricSet,
  Metric,
  MetricsQuery,
  MetricUnit,
  StreamMetricSet,
} from '../model/metrics.ts'
import { basinNameProblem, type StreamRef, streamNameProblem } from '../model/names.ts'
import { macrotask } from '../runtime/macrotask.ts'
import {
  getDocument,
  listDocuments,
  streamKey,
  type UsageDocument,
  type Versioned,
} from '../storage/documents.ts'
import {
  ACCOUNT,
  basinOf,
  basinScope,
  logScope,
  parseUsageKey,
  readChunks,
  readMeasurements,
  usageKey,
} from './documents.ts'
import { lastMeasurement, measureBasin, runToEnd } from './measuring.ts'

const DOCUMENTS_PER_PAGE = 1_000

/** Work that a query requires to be complete before it reads. */
interface Preparation {
  /** Stores what this engine recorded. */
  flush(): Promise<void>
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
    const { from, to, resolution } = plan
    const { session } = this.#context
    const chunks = await readChunks(session, scope, resolution, chunksBetween(resolution, from, to))
    const [unit, fixed] = ACCUMULATIONS[set]
    const accumulations = (fixed ?? OPERATIONS).map((name) => {
      const points = chunks.flatMap(({ chunk, series }) =>
        pointsOf(series, seriesName(set, name), resolution, chunk),
      )
      const values = totals(points, plan)
      return { kind: 'accumulation', name, unit, interval: resolution.interval, values } as const
    })
    return fixed ? accumulations : accumulations.filter(({ values }) => values.length > 0)
  }

  async #streamStorage({ basin, stream }: StreamRef, plan: MetricsPlan): Promise<readonly Metric[]> {
    const { session } = this.#context
    const document = await getDocument(session, 'streams', streamKey(basin, stream))
    if (document === undefined) return [gauge([])]
    const { logId, createdAt } = document.value
    await this.#prepare.flush()
    const points = await this.#measurements(logScope(logId), BY_MINUTE, plan)
    const until = this.#now()
    const size = until >= plan.from ? (await session.measure([logId]))[0]! : undefined
    if (size !== undefined) {
      const isOld = points.length === 0 && createdAt / 1000 < keptFrom(BY_DAY, until)
      const isUnchanged = isOld && (await lastMeasurement(session, logId, until)) === undefined
      // Its last change is longer ago than measurements are kept.
      points.push([isUnchanged ? 0 : until, size])
    }
    return [gauge(lastMeasurements(points, plan, until))]
  }

  async #basinStorage(basin: string, plan: MetricsPlan): Promise<readonly Metric[]> {
    await this.#prepare.flush()
    await this.#prepare.sample()
    const found = await getDocument(this.#context.session, 'basins', basin)
    // Excludes measurements of an earlier basin with the same name.
    const since = found === undefined ? 0 : Math.floor(found.value.createdAt / 1000)
    const points = await this.#measurements(basinScope(basin), BY_HOUR, plan, since)
    // A deleted basin has no values after its last measurement, instead of repeating it.
    const until = found === undefined ? Math.max(-1, ...points.map(([time]) => time)) : this.#now()
    if (found === undefined || plan.to <= hourOf(until) * BY_HOUR.bucketSeconds || until < plan.from) {
      return [gauge(lastMeasurements(points, plan, until))]
    }
    const { bytes } = await runToEnd(measureBasin(this.#context, basin))
    return [gauge(lastMeasurements([...points, [until, bytes]], plan, until))]
  }

  async #activeBasins({ from, to, resolution }: MetricsPlan): Promise<readonly Metric[]> {
    await this.#prepare.flush()
    await this.#prepare.sample()
    const active = new Set<string>()
    for (const chunk of chunksBetween(resolution, from, to)) {
      for await (const { key, value } of this.#basinsOf(resolution, chunk)) {
        const wasActive = pointsOf(value.series, ACTIVE, resolution, chunk).some(
          ([time]) => time < to && time + resolution.bucketSeconds > from,
        )
        if (wasActive) active.add(basinOf(parseUsageKey(key).scope)!)
      }
    }
    return [{ kind: 'label', name: 'active_basins', values: [...active].sort() }]
  }

  /** The usage documents of all basins in a chunk. */
  async *#basinsOf(resolution: Resolution, chunk: number): AsyncGenerator<Versioned<UsageDocument>> {
    const prefix = usageKey(resolution, chunk, basinScope(''))
    let after = ''
    for (;;) {
      const range = { prefix, after, limit: DOCUMENTS_PER_PAGE }
      const page = await listDocuments(this.#context.session, 'usage', range)
      yield* page
      if (page.length < DOCUMENTS_PER_PAGE) return
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
    finest: Resolution,
    { from, to, seconds }: MetricsPlan,
    since = 0,
  ): Promise<UsagePoint[]> {
    const range = { finest, since, to, stopBefore: from + seconds }
    return readMeasurements(this.#context.session, scope, range, this.#now())
  }

  #now(): number {
    return Math.floor(this.#context.clock.now() / 1000)
  }
}

function gauge(values: readonly UsagePoint[]): Metric {
  return { kind: 'gauge', name: METERED_SIZE, unit: 'bytes', values }
}
