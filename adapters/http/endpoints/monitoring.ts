import { HeadwaterError } from '../../../src/model/errors.ts'
import type { Endpoint } from '../request.ts'

/**
 * Replies 200 `OK` if the engine can read its storage, and a line for everything else that an operator should
 * know; or 503 with the reason.
 */
export const health: Endpoint = async (request, _, owner) => {
  const headers = { 'content-type': 'text/plain; charset=utf-8' }
  try {
    await owner.checkStorage()
    const { clockOffsetMs, expiryPaused, lostTails } = owner.stats()
    const notes = [
      'OK',
      clockOffsetMs && `clock offset: ${clockOffsetMs} ms`,
      expiryPaused && 'expiry paused: the clock stepped',
      lostTails && `lost tails: ${lostTails}`,
    ]
    return { status: 200, headers, body: notes.filter(Boolean).join('\n') }
  } catch (error) {
    request.report(error)
    return { status: 503, headers, body: HeadwaterError.is(error) ? error.message : 'internal error' }
  }
}

/** Reports counts and totals of the process to Prometheus. */
export const prometheus: Endpoint = async (_request, _hw, owner) => {
  // Few handlers are ever asked for it.
  const { PROMETHEUS_CONTENT_TYPE, prometheusReport, prometheusText } = await import(
    '../../../src/wire/prometheus.ts'
  )
  return {
    status: 200,
    headers: { 'content-type': PROMETHEUS_CONTENT_TYPE, 'cache-control': 'no-store' },
    body: prometheusText(prometheusReport(owner.stats(), await owner.counters())),
  }
}
