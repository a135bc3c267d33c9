import { BASIN_NAME_BYTES_MIN_ON_POST } from '../../../src/model/limits.ts'
import { ACCOUNT_METRIC_SETS, BASIN_METRIC_SETS, STREAM_METRIC_SETS } from '../../../src/model/metrics.ts'
import { basinNameProblem } from '../../../src/model/names.ts'
import { metricsJson } from '../../../src/wire/json-resources.ts'
import { decodeMetricsQuery } from '../../../src/wire/query.ts'
import { jsonReply } from '../reply.ts'
import type { ApiRequest, Endpoint } from '../request.ts'

export const accountMetrics: Endpoint = async (request, hw) => {
  const query = decodeMetricsQuery(request.query, ACCOUNT_METRIC_SETS)
  return jsonReply(metricsJson(await hw.metrics(query)))
}

export const basinMetrics: Endpoint = async (request, hw) => {
  const basin = basinOf(request)
  const query = decodeMetricsQuery(request.query, BASIN_METRIC_SETS)
  return jsonReply(metricsJson(await hw.basin(basin).metrics(query)))
}

export const streamMetrics: Endpoint = async (request, hw) => {
  const basin = basinOf(request)
  const { stream } = request
  const query = decodeMetricsQuery(request.query, STREAM_METRIC_SETS)
  return jsonReply(metricsJson(await hw.basin(basin).stream(stream).metrics(query)))
}

/** Basin names have at least 8 characters here. Throws 400 `bad_path`. */
function basinOf(request: ApiRequest): string {
  return request.pathParameter('basin', (name) => basinNameProblem(name, BASIN_NAME_BYTES_MIN_ON_POST))
}
