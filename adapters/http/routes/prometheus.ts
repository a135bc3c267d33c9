import {
  PROMETHEUS_CONTENT_TYPE,
  type PrometheusMetric,
  prometheusText,
} from '../../../src/wire/prometheus.ts'
import type { Endpoint } from '../router.ts'

/** What the process does, for Prometheus (wire-behaviour.md 1.3): counts without the name of any basin or stream. */
export const prometheus: Endpoint = (_context, owner) => {
  const stats = owner.stats()
  const gauge = (name: string, help: string, value: number): PrometheusMetric => ({
    name: `headwater_${name}`,
    help,
    type: 'gauge',
    samples: [{ value }],
  })
  const text = prometheusText([
    gauge('open_reads', 'Read sessions and long polls that are open', stats.openReads),
    gauge('waiting_reads', 'Open reads that wait at the tail of a stream', stats.waitingReads),
    gauge('pending_appends', 'Appends that are not durable yet', stats.pendingAppends),
    gauge('append_in_flight_bytes', 'Metered bytes of the appends in flight', stats.appendBytesInFlight),
    gauge('waiting_appends', 'Appends that wait for room among those in flight', stats.waitingAppends),
    gauge('cached_streams', 'Streams that are kept at hand', stats.cachedStreams),
  ])
  return { status: 200, headers: { 'content-type': PROMETHEUS_CONTENT_TYPE }, body: text }
}
