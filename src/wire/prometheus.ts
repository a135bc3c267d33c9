/** One metric with its samples, for Prometheus. */
export interface PrometheusMetric {
  /** With its unit, as in `headwater_appended_bytes_total`. */
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly samples: readonly PrometheusSample[]
}

export interface PrometheusSample {
  /** Behind the metric's name: `_bucket`, `_sum` and `_count` of a histogram. */
  readonly suffix?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly value: number
}

/** Counts of observations by size. */
export interface PrometheusHistogram {
  /** Upper bounds, ascending, each inclusive. */
  readonly bounds: readonly number[]
  /** One for each bound, and one for what lies beyond the last. */
  readonly counts: readonly number[]
  readonly sum: number
}

export const PROMETHEUS_CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/** The text exposition format 0.0.4 (wire-behaviour.md 1.3). */
export function prometheusText(metrics: readonly PrometheusMetric[]): string {
  return metrics.map(metricText).join('')
}

/** The samples of a histogram: each bucket counts what is at or below its bound. */
export function histogramSamples({ bounds, counts, sum }: PrometheusHistogram): PrometheusSample[] {
  let total = 0
  const buckets = counts.map((count, i) => {
    total += count
    const le = i < bounds.length ? String(bounds[i]) : '+Inf'
    return { suffix: '_bucket', labels: { le }, value: total }
  })
  return [...buckets, { suffix: '_sum', value: sum }, { suffix: '_count', value: total }]
}

function metricText({ name, help, type, samples }: PrometheusMetric): string {
  const lines = samples.map(
    ({ suffix = '', labels = {}, value }) => `${name}${suffix}${labelText(labels)} ${value}`,
  )
  return [`# HELP ${name} ${escaped(help)}`, `# TYPE ${name} ${type}`, ...lines, ''].join('\n')
}

function labelText(labels: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(labels).map(
    ([name, value]) => `${name}="${escaped(value).replaceAll('"', '\\"')}"`,
  )
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`
}

function escaped(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
}
