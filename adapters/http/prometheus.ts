import type { Engine, EngineStats } from '../../src/index.ts'

type UsageCounters = Awaited<ReturnType<Engine['counters']>>
/** Counts of observations by size. */
type HistogramCounts = UsageCounters['appendBatchBytes']

export const PROMETHEUS_CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/**
 * The metrics of `/metrics` in the text exposition format 0.0.4 (docs/protocol.md "Health and Prometheus").
 * None of them names a basin or a stream.
 */
export function prometheusText(open: EngineStats, totals: UsageCounters): string {
  const operations = Object.entries(totals.operations).map(
    ([name, value]) => [`{operation="${name}"}`, value] as const,
  )
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
    metric('counter', 'operations_total', 'Control operations, by name', operations),
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
  ].join('')
}

function gauge(name: string, help: string, value: number): string {
  return metric('gauge', name, help, [['', value]])
}

function counter(name: string, help: string, value: number): string {
  return metric('counter', name, help, [['', value]])
}

/** Each bucket counts the observations up to its bound. */
function histogram(name: string, help: string, { bounds, counts, sum }: HistogramCounts): string {
  let total = 0
  const buckets = counts.map((count, i) => {
    total += count
    return [`_bucket{le="${bounds[i] ?? '+Inf'}"}`, total] as const
  })
  return metric('histogram', name, help, [...buckets, ['_sum', sum], ['_count', total]])
}

/** A metric with its samples: what follows its name, and the value. */
function metric(
  type: 'counter' | 'gauge' | 'histogram',
  name: string,
  help: string,
  samples: readonly (readonly [suffix: string, value: number])[],
): string {
  const lines = samples.map(([suffix, value]) => `headwater_${name}${suffix} ${value}`)
  return [`# HELP headwater_${name} ${help}`, `# TYPE headwater_${name} ${type}`, ...lines, ''].join('\n')
}
