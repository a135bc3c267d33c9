import { type CallOptions, signalOf } from '../../src/api/call-options.ts'
import { utf8 } from '../../src/model/bytes.ts'
import { assertValid, invalid } from '../../src/model/errors.ts'
import type { Provisioned, ProvisionResult } from '../../src/model/info.ts'
import { LIST_QUERY, type ListQuery } from '../../src/model/info.ts'
import { BASIN_NAME_BYTES_MIN_ON_POST } from '../../src/model/limits.ts'
import {
  ACCOUNT_METRIC_SETS,
  BASIN_METRIC_SETS,
  METRIC_INTERVALS,
  type Metric,
  type MetricsQuery,
  STREAM_METRIC_SETS,
} from '../../src/model/metrics.ts'
import { basinNameProblem, requestTokenProblem, streamNameProblem } from '../../src/model/names.ts'
import {
  assertMembers,
  assertText,
  type Check,
  type Members,
  type MembersOf,
  millisecondsOf,
  oneOf,
  type Time,
} from '../../src/model/validation.ts'
import { idFrom, secureRandom } from '../../src/runtime/ids.ts'
import { vendorHeader } from '../../src/wire/headers.ts'
import { oneOf as choiceOf } from '../../src/wire/json.ts'
import { metricsOf } from '../../src/wire/json-resources.ts'
import { listQueryParts, metricsQueryParts, queryText } from '../../src/wire/query.ts'
import { type CallReply, type CallSender, jsonCall } from './call.ts'

type Signal = AbortSignal | undefined

/** Returns the signal of a call. Throws if its options are invalid, and if it or the client has ended. */
export function begin({ closing }: CallSender, options: CallOptions | undefined, members?: Members): Signal {
  const signal = signalOf(options, members)
  signal?.throwIfAborted()
  closing.throwIfAborted()
  return signal
}

/** The same for a call about a basin, whose name it checks. */
export function beginBasin(
  sender: CallSender,
  basin: string,
  options: CallOptions | undefined,
  members?: Members,
): Signal {
  assertText(basin, 'basin')
  const signal = begin(sender, options, members)
  assertValid(basinNameProblem(basin), 'basin')
  return signal
}

/** The same for a call about a stream. */
export function beginStream(
  sender: CallSender,
  basin: string,
  stream: string,
  options: CallOptions | undefined,
  members?: Members,
): Signal {
  assertText(stream, 'stream')
  const signal = begin(sender, options, members)
  assertValid(streamNameProblem(stream), 'stream')
  assertValid(basinNameProblem(basin), 'basin')
  return signal
}

/** The header that identifies a creation, so that a repetition has no further effect. */
export interface Creation {
  /** The request token as the value of a header, whose characters stand for the bytes of UTF-8. */
  readonly header: string
  /** Whether only this call has the token. */
  readonly isOwn: boolean
}

/** The request token of a creation: the given one, or a random one. Throws `invalid`. */
export function creationOf(requestToken: string | undefined): Creation {
  if (requestToken === undefined) return { header: idFrom(secureRandom), isOwn: true }
  assertValid(requestTokenProblem(requestToken), 'requestToken')
  if (/[\0\r\n]/.test(requestToken) || requestToken.trim() !== requestToken) {
    throw invalid('`requestToken` must have no line breaks and no spaces at its ends', 'requestToken')
  }
  return { header: String.fromCharCode(...utf8(requestToken)), isOwn: false }
}

/** The result of a creation. A repetition of an own creation finds what the first attempt created. */
export function provisionedOf<Info>(info: Info, reply: CallReply, creation?: Creation): Provisioned<Info> {
  const headers = { header: (name: string) => reply.headers.get(name) ?? undefined }
  const sent = vendorHeader(headers, 'provision-result')
  // Pages of other origins do not see the header of every server.
  const result = sent === undefined ? 'created' : resultOf(sent, 'provision-result')
  return { result: creation?.isOwn === true ? 'created' : result, info }
}

const resultOf = choiceOf<ProvisionResult>(['created', 'updated', 'noop'])

/** The query of a list. Throws `invalid`, also for what `problemOf` finds. */
export function listSearch(
  query: ListQuery,
  problemOf: (text: string, role: 'prefix' | 'start-after') => string | undefined,
): string {
  assertMembers(query, LIST_QUERY, 'query')
  assertValid(problemOf(query.prefix ?? '', 'prefix'), 'prefix')
  assertValid(problemOf(query.startAfter ?? '', 'start-after'), 'startAfter')
  return queryText(listQueryParts(query))
}

/** @param names The basin, or the basin and the stream, whose metrics are asked for; none for the account. */
export async function metricsFor(
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
