/// <reference path="../assets.d.ts" />
import { HeadwaterError } from '../../../src/model/errors.ts'
import { BASIN_NAME_BYTES_MIN_ON_POST } from '../../../src/model/limits.ts'
import { ACCOUNT_METRIC_SETS, BASIN_METRIC_SETS, STREAM_METRIC_SETS } from '../../../src/model/metrics.ts'
import { basinNameProblem } from '../../../src/model/names.ts'
import { metricsJson } from '../../../src/wire/json-resources.ts'
import { decodeMetricsQuery } from '../../../src/wire/query.ts'
import { PROMETHEUS_CONTENT_TYPE, prometheusText } from '../prometheus.ts'
import { jsonReply } from '../reply.ts'
import { type Endpoint, type Method, type Methods, permitted } from '../request.ts'
import type { Route } from '../router.ts'
import { type OpenSession, openSessions } from '../sessions.ts'

/**
 * Replies 200 `OK` if the engine can read its storage, and a line for everything else that an operator should
 * know; or 503 with the reason.
 */
const health: Endpoint = async (request) => {
  const { owner } = request
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
const prometheus: Endpoint = async ({ owner }) => ({
  status: 200,
  headers: { 'content-type': PROMETHEUS_CONTENT_TYPE, 'cache-control': 'no-store' },
  body: prometheusText(owner.stats(), await owner.counters()),
})

const accountMetrics: Endpoint = async (request, hw) => {
  const query = decodeMetricsQuery(request.query, ACCOUNT_METRIC_SETS)
  return jsonReply(metricsJson(await hw.metrics(query)))
}

/** Basin names have at least `bytesMin` bytes: 8 in the paths of the protocol, which are below `/v1`. */
function basinMetrics(bytesMin: number): Endpoint {
  return async (request, hw) => {
    const basin = hw.basin(request.pathParameter('basin', (name) => basinNameProblem(name, bytesMin)))
    const query = decodeMetricsQuery(request.query, BASIN_METRIC_SETS)
    return jsonReply(metricsJson(await basin.metrics(query)))
  }
}

function streamMetrics(bytesMin: number): Endpoint {
  return async (request, hw) => {
    const basin = hw.basin(request.pathParameter('basin', (name) => basinNameProblem(name, bytesMin)))
    const stream = basin.stream(request.stream)
    const query = decodeMetricsQuery(request.query, STREAM_METRIC_SETS)
    return jsonReply(metricsJson(await stream.metrics(query)))
  }
}

/** The largest number of read sessions in a reply. */
const FOLLOWERS_MAX = 1000

/**
 * Lists the read sessions of all handlers of the engine whose streams the caller may see, those that are the
 * farthest behind first (docs/protocol.md "Followers"). `basin` and `stream` select those of one basin or
 * stream.
 */
const followers: Endpoint = async (request, hw) => {
  const query = new URLSearchParams(request.query)
  const [basin, stream] = [query.get('basin'), query.get('stream')]
  const visible = await hw.visible([...openSessions(request.owner)].map(followerOf))
  const listed = visible
    .filter((one) => (basin === null || one.basin === basin) && (stream === null || one.stream === stream))
    .sort((a, b) => b.behind - a.behind)
  return jsonReply(
    JSON.stringify({
      followers: listed.slice(0, FOLLOWERS_MAX),
      has_more: listed.length > FOLLOWERS_MAX,
    }),
  )
}

function followerOf({ cursor, exchange, protocol, openedAt }: OpenSession) {
  const { basin, stream, position, tail } = cursor.state
  const client = exchange.header('user-agent')?.slice(0, 200)
  return {
    ...{ basin, stream, protocol, client },
    since: new Date(openedAt).toISOString(),
    next_seq_num: position,
    behind: Math.max(0, tail - position),
  }
}

/** Replies the OpenAPI document of the protocol (docs/openapi.yaml), which is the same for every server. */
const openApi: Endpoint = async () => {
  // Loaded on demand, because few handlers serve it.
  const { default: document } = await import('../../../docs/openapi.yaml?json')
  return jsonReply(document)
}

const HEALTH: Method = { endpoint: health, operations: 'public' }
const LONG = BASIN_NAME_BYTES_MIN_ON_POST

/** The endpoints that report on the server and its use. */
export const MONITORING_ROUTES: readonly Route<Methods>[] = [
  { pattern: '/health', target: { GET: HEALTH } },
  { pattern: '/ping', target: { GET: HEALTH } },
  { pattern: '/openapi.json', target: { GET: { endpoint: openApi, operations: 'public' } } },
  { pattern: '/followers', target: { GET: permitted(followers, 'account-metrics') } },
  { pattern: '/metrics', target: { GET: { endpoint: prometheus, operations: 'metrics' } } },
  { pattern: '/metrics/{basin}', target: { GET: permitted(basinMetrics(1), 'basin-metrics') } },
  { pattern: '/metrics/{basin}/{stream}', target: { GET: permitted(streamMetrics(1), 'stream-metrics') } },
  { pattern: '/v1/metrics', target: { GET: permitted(accountMetrics, 'account-metrics') } },
  { pattern: '/v1/metrics/{basin}', target: { GET: permitted(basinMetrics(LONG), 'basin-metrics') } },
  {
    pattern: '/v1/metrics/{basin}/{stream}',
    target: { GET: permitted(streamMetrics(LONG), 'stream-metrics') },
  },
]
