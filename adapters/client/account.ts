import type { CallOptions } from '../../src/api/call-options.ts'
import {
  type AccessTokenInfo,
  type AccessTokenInput,
  accessTokenIdProblem,
  accessTokenPrefixProblem,
  newAccessToken,
} from '../../src/model/access.ts'
import { assertValid, invalid } from '../../src/model/errors.ts'
import type { ListQuery, Page } from '../../src/model/info.ts'
import { BASIN_NAME_BYTES_MIN_ON_POST } from '../../src/model/limits.ts'
import {
  ACCOUNT_METRIC_SETS,
  BASIN_METRIC_SETS,
  METRIC_INTERVALS,
  type Metric,
  type MetricsQuery,
  STREAM_METRIC_SETS,
} from '../../src/model/metrics.ts'
import {
  assertMembers,
  assertText,
  type Check,
  type MembersOf,
  millisecondsOf,
  oneOf,
  type Time,
} from '../../src/model/validation.ts'
import {
  accessTokenInfoOf,
  accessTokenText,
  issuedTokenOf,
  metricsOf,
  pageOf,
} from '../../src/wire/json-resources.ts'
import { metricsQueryParts, queryText } from '../../src/wire/query.ts'
import { type CallSender, jsonCall } from './call.ts'
import { begin, listSearch } from './control-calls.ts'

/** Access tokens and usage metrics, which few apps use: loaded on first use. */

export async function issueAccessToken(
  sender: CallSender,
  token: AccessTokenInput,
  options?: CallOptions,
): Promise<string> {
  const signal = begin(sender, options)
  // The clock of the server decides whether an expiry is in the past.
  const text = accessTokenText(newAccessToken(token, Number.NEGATIVE_INFINITY))
  const call = jsonCall('POST', '/access-tokens', { text, isRepeatable: false, signal })
  return sender.json(call, issuedTokenOf)
}

export async function listAccessTokens(
  sender: CallSender,
  query: ListQuery = {},
  options?: CallOptions,
): Promise<Page<AccessTokenInfo>> {
  const signal = begin(sender, options)
  const call = jsonCall('GET', `/access-tokens${listSearch(query, accessTokenPrefixProblem)}`, { signal })
  return sender.json(call, (value) => pageOf(value, 'access_tokens', accessTokenInfoOf))
}

export async function revokeAccessToken(
  sender: CallSender,
  id: string,
  options?: CallOptions,
): Promise<void> {
  assertText(id, 'tokenId')
  const signal = begin(sender, options)
  assertValid(accessTokenIdProblem(id), 'id')
  const path = `/access-tokens/${encodeURIComponent(id)}`
  await sender.send(jsonCall('DELETE', path, { isRepeatable: false, signal }))
}

/** @param names The basin, or the basin and the stream, whose metrics are asked for; none for the account. */
export async function metrics(
  sender: CallSender,
  names: readonly string[],
  query: MetricsQuery,
  options?: CallOptions,
): Promise<readonly Metric[]> {
  const signal = begin(sender, options)
  assertMetricsQuery((['account', 'basin', 'stream'] as const)[names.length]!, query)
  // The paths of the protocol have no place for names of basins that are shorter; those of headwater's own
  // do.
  const isShort = names[0] !== undefined && names[0].length < BASIN_NAME_BYTES_MIN_ON_POST
  const path = [isShort ? '/../metrics' : '/metrics', ...names.map(encodeURIComponent)].join('/')
  const call = jsonCall('GET', `${path}${queryText(metricsQueryParts(query))}`, { signal })
  return sender.json(call, metricsOf)
}

const METRIC_SETS = { account: ACCOUNT_METRIC_SETS, basin: BASIN_METRIC_SETS, stream: STREAM_METRIC_SETS }

const isTime: Check = (value, field) => {
  const ms = millisecondsOf(value as Time)
  if (!(ms >= 0 && ms < 2 ** 32 * 1000)) {
    throw invalid(`\`${field}\` must be a Date or milliseconds since the Unix epoch`, field)
  }
}

const METRICS_QUERY: MembersOf<MetricsQuery> = {
  set: 'string',
  start: isTime,
  end: isTime,
  interval: oneOf(METRIC_INTERVALS),
}

/** Throws `invalid` for a query that has no form on the wire. The server checks the rest. */
function assertMetricsQuery(level: keyof typeof METRIC_SETS, query: MetricsQuery): void {
  assertMembers(query, METRICS_QUERY, 'query')
  oneOf(METRIC_SETS[level])(query.set, 'set')
  for (const field of ['start', 'end'] as const) {
    if (query[field] === undefined) throw invalid(`\`${field}\` is required`, field)
  }
}
