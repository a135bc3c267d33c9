import { HeadwaterError } from '../../../src/model/errors.ts'
import { PROMETHEUS_CONTENT_TYPE, prometheusReport, prometheusText } from '../../../src/wire/prometheus.ts'
import type { Endpoint } from '../request.ts'

/** Replies 200 `OK` if the engine can read its storage, or 503 with the reason. */
export const health: Endpoint = async (request, _, owner) => {
  const headers = { 'content-type': 'text/plain; charset=utf-8' }
  try {
    await owner.checkStorage()
    return { status: 200, headers, body: 'OK' }
  } catch (error) {
    request.report(error)
    return { status: 503, headers, body: HeadwaterError.is(error) ? error.message : 'internal error' }
  }
}

/** Reports counts and totals of the process to Prometheus. */
export const prometheus: Endpoint = async (_request, _hw, owner) => ({
  status: 200,
  headers: { 'content-type': PROMETHEUS_CONTENT_TYPE, 'cache-control': 'no-store' },
  body: prometheusText(prometheusReport(owner.stats(), await owner.counters())),
})
