import { covers } from '../../core/permission.ts'
import type {
  AccountMetricSet,
  BasinMetricSet,
  Metric,
  MetricsQuery,
  StreamMetricSet,
} from '../../model/metrics.ts'
import type { StreamRef } from '../context.ts'
import type { MetricsService } from '../services.ts'
import { type Gate, prefixed } from './gate.ts'

/** Usage metrics, as a caller may see them. Whether what is asked about exists makes no difference. */
export class GatedMetrics implements MetricsService {
  readonly #gate: Gate
  readonly #metrics: MetricsService

  constructor(gate: Gate, metrics: MetricsService) {
    this.#gate = gate
    this.#metrics = metrics
  }

  account(query: MetricsQuery<AccountMetricSet>): Promise<readonly Metric[]> {
    return this.#gate.run('account-metrics', {}, async ({ scope }) => {
      const metrics = await this.#metrics.account(query)
      // Labels are names of basins: a list like any other.
      return metrics.map((metric) =>
        metric.kind === 'label'
          ? { ...metric, values: metric.values.filter((name) => covers(scope.basins, name)) }
          : metric,
      )
    })
  }

  basin(basin: string, query: MetricsQuery<BasinMetricSet>): Promise<readonly Metric[]> {
    return this.#gate.run('basin-metrics', { basin }, () => this.#metrics.basin(basin, query))
  }

  stream(ref: StreamRef, query: MetricsQuery<StreamMetricSet>): Promise<readonly Metric[]> {
    return this.#gate.run('stream-metrics', ref, (grant) => this.#metrics.stream(prefixed(grant, ref), query))
  }
}
