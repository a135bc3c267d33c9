import type { Metric } from '../model/metrics.ts'

/** The metrics response (wire-behaviour.md 11.3). */
export function metricsJson(metrics: readonly Metric[]): string {
  return JSON.stringify({ values: metrics.map(({ kind, ...members }) => ({ [kind]: members })) })
}
