import { PROMETHEUS_CONTENT_TYPE, prometheusText } from '../../../src/wire/prometheus.ts'
import { prometheusReport } from '../../../src/wire/prometheus-report.ts'
import type { Endpoint } from '../router.ts'

/** What the process does, for Prometheus (wire-behaviour.md 1.3). */
export const prometheus: Endpoint = async (_context, owner) => ({
  status: 200,
  headers: { 'content-type': PROMETHEUS_CONTENT_TYPE, 'cache-control': 'no-store' },
  body: prometheusText(prometheusReport(owner.stats(), await owner.counters())),
})
