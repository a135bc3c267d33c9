import type { Engine, EngineStats } from '../../src/index.ts'

type UsageCounters = Awaited<ReturnType<Engine['counters']>>
/** Counts of observations by size. */
type HistogramCounts = UsageCounters['appendBatchBytes']

/** A Prometheus metric with its samples. */
interface PrometheusMetric {
  /** The name with its unit, as in `headwater_appended_bytes_total`. */
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly samples: readonly PrometheusSample[]
}

interface PrometheusSample {
  /** Appended to the name of the metric: `_bucket`, `_sum` and `_count` of a histogram. */
  readonly suffix?: string | undefined
  readonly labels?: Readonly<Record<string, string>> | undefined
  readonly value: number
}

export const PROMETHEUS_CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/** The metrics in the text exposition format 0.0.4 (docs/protocol.md "Health and Prometheus"). */
export function prometheusText(metrics: readonly PrometheusMetric[]): string {
  return metrics.map(metricText).join('')
}

/** The samples of a histogram. Each bucket counts the observations up to its bound. */
export function histogramSamples({ bounds, counts, sum }: HistogramCounts): PrometheusSample[] {
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

/** The metrics of `/metrics`. None of them names a basin or a stream. */
export function prometheusReport(open: EngineStats, totals: UsageCounters): PrometheusMetric[] {
  const operations = Object.entries(totals.operations).map(([operation, value]) => ({
    labels: { operation },
    value,
  }))
  return [
    gauge('open_sessions', 'Reads and append sessions that are open', open.openSessions),
    gauge('open_reads', 'Read sessions and long polls that are open', open.openReads),
    gauge('waiting_reads', 'Open reads waiting at the tail of a stream', open.waitingReads),
    gauge('read_buffer_bytes', 'Bytes that open reads hold in memory', open.readBufferBytes),
    gauge('pending_appends', 'Appends that are not durable yet', open.pendingAppends),
    gauge('append_in_flight_bytes', 'Metered bytes of the appends in flight', open.appendBytesInFlight),
    gauge('waiting_appends', 'Appends that wait for room among those in flight', open.waitingAppends),
    gauge('waiting_append_bytes', 'Metered bytes of the appends that wait for room', open.waitingAppendBytes),
    gauge('cached_streams', 'Streams in the cache', open.cachedStreams),
    gauge('storage_full', '1 while appends fail for lack of space in the storage', Number(open.storageFull)),
    gauge('clock_offset_seconds', 'How far the storage clock is ahead', open.clockOffsetMs / 1000),
    gauge('expiry_paused', '1 while a stepped clock is not confirmed', Number(open.expiryPaused)),
    counter('lost_tails_total', 'Streams that lost records', open.lostTails),
    {
      name: 'headwater_operations_total',
      help: 'Control operations, by name',
      type: 'counter',
      samples: operations,
    },
    counter('appends_total', 'Appends that became durable', totals.appends),
    counter('appended_records_total', 'Records that became durable', totals.appendedRecords),
    counter('appended_bytes_total', 'Metered bytes that became durable', totals.appendedBytes),
    counter('unary_reads_total', 'Reads of one batch', totals.unaryReads),
    counter('streaming_reads_total', 'Read sessions that were opened', totals.streamingReads),
    counter('read_batches_total', 'Batches that were delivered', totals.readBatches),
    counter('read_bytes_total', 'Metered bytes that were delivered', totals.readBytes),
    histogram(
      'append_permit_latency_seconds',
      'How long appends waited for room among those in flight',
      totals.appendQueueSeconds,
    ),
    histogram(
      'append_ack_latency_seconds',
      'How long appends in flight took to become durable',
      totals.appendAckSeconds,
    ),
    histogram('append_batch_records', 'Records of an append', totals.appendBatchRecords),
    histogram('append_batch_bytes', 'Metered bytes of an append', totals.appendBatchBytes),
  ]
}

function gauge(name: string, help: string, value: number): PrometheusMetric {
  return { name: `headwater_${name}`, help, type: 'gauge', samples: [{ value }] }
}

function counter(name: string, help: string, value: number): PrometheusMetric {
  return { name: `headwater_${name}`, help, type: 'counter', samples: [{ value }] }
}

function histogram(name: string, help: string, counts: HistogramCounts): PrometheusMetric {
  return { name: `headwater_${name}`, help, type: 'histogram', samples: histogramSamples(counts) }
}
