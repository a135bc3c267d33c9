import { BASIN_NAME_BYTES_MIN_ON_POST } from '../../../src/model/limits.ts'
import { ACCOUNT_METRIC_SETS, BASIN_METRIC_SETS, STREAM_METRIC_SETS } from '../../../src/model/metrics.ts'
import { basinNameProblem } from '../../../src/model/names.ts'
import { metricsJson } from '../../../src/wire/json-metrics.ts'
import { decodeMetricsQuery } from '../../../src/wire/metrics-query.ts'
import { jsonReply } from '../reply.ts'
import type { RequestContext } from '../request-context.ts'
import type { Endpoint } from '../router.ts'

/** The endpoints of usage metrics (wire-behaviour.md 1.2 rows 19 to 21, 11). */
export const accountMetrics: Endpoint = async (context) => {
  const query = decodeMetricsQuery(context.search, ACCOUNT_METRIC_SETS)
  return jsonReply(metricsJson(await context.hw.metrics(query)))
}

export const basinMetrics: Endpoint = async (context) => {
  const basin = basinOf(context)
  const query = decodeMetricsQuery(context.search, BASIN_METRIC_SETS)
  return jsonReply(metricsJson(await context.hw.basin(basin).metrics(query)))
}

export const streamMetrics: Endpoint = async (context) => {
  const basin = basinOf(context)
  const stream = context.pathParameter('stream')
  const query = decodeMetricsQuery(context.search, STREAM_METRIC_SETS)
  return jsonReply(metricsJson(await context.hw.basin(basin).stream(stream).metrics(query)))
}

/** Names here have at least 8 characters (rulings.md "Basins"). Throws 400 `bad_path`. */
function basinOf(context: RequestContext): string {
  return context.pathParameter('basin', (name) => basinNameProblem(name, BASIN_NAME_BYTES_MIN_ON_POST))
}
