/// <reference path="../assets.d.ts" />
import type { Engine } from '../../../src/index.ts'
import { HeadwaterError } from '../../../src/model/errors.ts'
import { BASIN_NAME_BYTES_MIN_ON_POST } from '../../../src/model/limits.ts'
import { ACCOUNT_METRIC_SETS, BASIN_METRIC_SETS, STREAM_METRIC_SETS } from '../../../src/model/metrics.ts'
import { basinNameProblem } from '../../../src/model/names.ts'
import { metricsJson } from '../../../src/wire/json-resources.ts'
import { decodeMetricsQuery } from '../../../src/wire/query.ts'
import { PROMETHEUS_CONTENT_TYPE, prometheusText } from '../prometheus.ts'
import { jsonReply, type Reply } from '../reply.ts'
import type { ApiRequest, Endpoint } from '../request.ts'
import { type OpenSession, openSessions } from '../sessions.ts'

/**
 * Replies 200 `OK` if the engine can read its storage, and a line for everything else that an operator should
 * know; or 503 with the reason.
 */
export const health: Endpoint = async (request) => {
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
export const prometheus: Endpoint = async ({ owner }) => ({
  status: 200,
  headers: { 'content-type': PROMETHEUS_CONTENT_TYPE, 'cache-control': 'no-store' },
  body: prometheusText(owner.stats(), await owner.counters()),
})

export const accountMetrics: Endpoint = async (request, hw) => {
  const query = decodeMetricsQuery(request.query, ACCOUNT_METRIC_SETS)
  return jsonReply(metricsJson(await hw.metrics(query)))
}

export const basinMetrics: Endpoint = (request, hw) => metricsOfBasin(hw, longName(request), request)

export const streamMetrics: Endpoint = (request, hw) => metricsOfStream(hw, longName(request), request)

/** The metrics of a basin with a name of any length, which the paths of the protocol do not admit. */
export const anyBasinMetrics: Endpoint = (request, hw) => metricsOfBasin(hw, request.basin, request)

export const anyStreamMetrics: Endpoint = (request, hw) => metricsOfStream(hw, request.basin, request)

async function metricsOfBasin(hw: Engine, basin: string, { query }: ApiRequest): Promise<Reply> {
  return jsonReply(metricsJson(await hw.basin(basin).metrics(decodeMetricsQuery(query, BASIN_METRIC_SETS))))
}

async function metricsOfStream(hw: Engine, basin: string, { query, stream }: ApiRequest): Promise<Reply> {
  const sets = decodeMetricsQuery(query, STREAM_METRIC_SETS)
  return jsonReply(metricsJson(await hw.basin(basin).stream(stream).metrics(sets)))
}

/** Basin names have at least 8 characters in the paths of the protocol. Throws 400 `bad_path`. */
function longName(request: ApiRequest): string {
  return request.pathParameter('basin', (name) => basinNameProblem(name, BASIN_NAME_BYTES_MIN_ON_POST))
}

/** The largest number of read sessions in a reply. */
const FOLLOWERS_MAX = 1000

/**
 * Lists the read sessions of all handlers of the engine whose streams the caller may see, those that are the
 * farthest behind first (docs/protocol.md "Followers"). `basin` and `stream` select those of one basin or
 * stream.
 */
export const followers: Endpoint = async (request, hw) => {
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
export const openApi: Endpoint = async () => {
  // Loaded on demand, because few handlers serve it.
  const { default: document } = await import('../../../docs/openapi.yaml?json')
  return jsonReply(document)
}
