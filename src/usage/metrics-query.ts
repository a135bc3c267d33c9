import {
  lastMeasurements,
  type MetricsLevel,
  type MetricsPlan,
  planMetrics,
  totals,
} from '../core/usage/metrics-plan.ts'
import {
  ACTIVE,
  alignDown,
  BY_DAY,
  BY_HOUR,
  chunksBetween,
  HOUR_SECONDS,
  keptFrom,
  METERED_SIZE,
  pointsOf,
  RESOLUTIONS,
  seriesName,
  type UsagePoint,
} from '../core/usage/resolutions.ts'
import type { MetricsService, UsageContext } from '../engine/usage.ts'
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
import { documentPages, getDocument, streamKey } from '../storage/documents.ts'
import { streamBytes } from './upkeep.ts'
import {
  ACCOUNT,
  basinScope,
  logScope,
  parseUsageKey,
  readChunks,
  readMeasurements,
  usageKey,
} from './usage-store.ts'

const DOCUMENTS_PER_PAGE = 1_000

/** Work that a query requires to be complete before it reads. */
interface Preparation {
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
    const chunks = await readChunks(this.#context.session, scope, resolution, from, to)
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
    await this.#prepare.flush()
    const { logId, createdAt } = document.value
    const now = this.#now()
    const before = plan.from + plan.seconds
    const points = await readMeasurements(session, logScope(logId), RESOLUTIONS, { before, since: 0, now })
    const [size] = await session.measure([logId])
    // Its last change may be longer ago than measurements are kept.
    const isUnchanged = points.length === 0 && createdAt / 1000 < keptFrom(BY_DAY, now)
    return [gauge(lastMeasurements([...points, [isUnchanged ? 0 : now, size!]], plan, now))]
  }

  async #basinStorage(basin: string, plan: MetricsPlan): Promise<readonly Metric[]> {
    await this.#prepare.flush()
    await this.#prepare.sample()
    const { session } = this.#context
    const document = await getDocument(session, 'basins', basin)
    const now = this.#now()
    // Excludes measurements of an earlier basin with the same name.
    const since = document === undefined ? 0 : Math.floor(document.value.createdAt / 1000)
    const before = plan.from + plan.seconds
    const range = { before, since, now }
    const points = await readMeasurements(session, basinScope(basin), [BY_HOUR, BY_DAY], range)
    if (document === undefined) {
      // It has no values after its last measurement, instead of repeating that.
      const until = Math.max(-1, ...points.map(([time]) => time))
      return [gauge(lastMeasurements(points, plan, until))]
    }
    const isPast = plan.to <= alignDown(now, HOUR_SECONDS)
    if (!isPast) points.push([now, await this.#bytesOf(basin)])
    return [gauge(lastMeasurements(points, plan, now))]
  }

  async #bytesOf(basin: string): Promise<number> {
    let bytes = 0
    for await (const pageBytes of streamBytes(this.#context.session, basin)) {
      bytes += pageBytes
      await macrotask()
    }
    return bytes
  }

  async #activeBasins({ from, to, resolution }: MetricsPlan): Promise<readonly Metric[]> {
    await this.#prepare.flush()
    await this.#prepare.sample()
    const active = new Set<string>()
    for (const chunk of chunksBetween(resolution, from, to)) {
      const prefix = usageKey(resolution, chunk, basinScope(''))
      for await (const page of documentPages(this.#context.session, 'usage', prefix, DOCUMENTS_PER_PAGE)) {
        for (const { key, value } of page) {
          const wasActive = pointsOf(value.series, ACTIVE, resolution, chunk).some(
            ([time]) => time < to && time + resolution.bucketSeconds > from,
          )
          if (wasActive) active.add(parseUsageKey(key).basin!)
        }
        await macrotask()
      }
    }
    return [{ kind: 'label', name: 'active_basins', values: [...active].sort() }]
  }

  #now(): number {
    return Math.floor(this.#context.clock.now() / 1000)
  }
}

function gauge(values: readonly UsagePoint[]): Metric {
  return { kind: 'gauge', name: METERED_SIZE, unit: 'bytes', values }
}
