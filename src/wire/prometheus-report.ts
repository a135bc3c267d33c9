import { histogramSamples, type PrometheusHistogram, type PrometheusMetric } from './prometheus.ts'

/** What is open at the moment. */
export interface OpenCounts {
  readonly openSessions: number
  readonly openReads: number
  readonly waitingReads: number
  readonly pendingAppends: number
  readonly appendBytesInFlight: number
  readonly waitingAppends: number
  readonly waitingAppendBytes: number
  readonly cachedStreams: number
}

/** Totals since the process has the engine open. */
export interface Totals {
  readonly operations: Readonly<Record<string, number>>
  readonly appends: number
  readonly appendedRecords: number
  readonly appendedBytes: number
  readonly readBatches: number
  readonly readBytes: number
  readonly unaryReads: number
  readonly streamingReads: number
  readonly appendPermitSeconds: PrometheusHistogram
  readonly appendAckSeconds: PrometheusHistogram
  readonly appendBatchRecords: PrometheusHistogram
  readonly appendBatchBytes: PrometheusHistogram
}

/** Everything that `/metrics` tells: nothing in it names a basin or a stream. */
export function prometheusReport(open: OpenCounts, totals: Totals): PrometheusMetric[] {
  const operations = Object.entries(totals.operations).map(([operation, value]) => ({
    labels: { operation },
    value,
  }))
  return [
    gauge('open_sessions', 'Reads and append sessions that are open', open.openSessions),
    gauge('open_reads', 'Read sessions and long polls that are open', open.openReads),
    gauge('waiting_reads', 'Open reads that wait at the tail of a stream', open.waitingReads),
    gauge('pending_appends', 'Appends that are not durable yet', open.pendingAppends),
    gauge('append_in_flight_bytes', 'Metered bytes of the appends in flight', open.appendBytesInFlight),
    gauge('waiting_appends', 'Appends that wait for room among those in flight', open.waitingAppends),
    gauge(
      'waiting_append_bytes',
      'Metered bytes of the appends that are not in flight yet',
      open.waitingAppendBytes,
    ),
    gauge('cached_streams', 'Streams that are kept at hand', open.cachedStreams),
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
      totals.appendPermitSeconds,
    ),
    histogram(
      'append_ack_latency_seconds',
      'How long it took from then until they were durable',
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

function histogram(name: string, help: string, counts: PrometheusHistogram): PrometheusMetric {
  return { name: `headwater_${name}`, help, type: 'histogram', samples: histogramSamples(counts) }
}
