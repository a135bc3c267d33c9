import type { Engine } from '../../../src/index.ts'
import { BASIN_NAME_BYTES_MIN_ON_POST } from '../../../src/model/limits.ts'
import { ACCOUNT_METRIC_SETS, BASIN_METRIC_SETS, STREAM_METRIC_SETS } from '../../../src/model/metrics.ts'
import { basinNameProblem } from '../../../src/model/names.ts'
import { metricsJson } from '../../../src/wire/json-resources.ts'
import { decodeMetricsQuery } from '../../../src/wire/query.ts'
import { jsonReply, type Reply } from '../reply.ts'
import type { ApiRequest, Endpoint } from '../request.ts'

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
