import { type CallOptions, signalOf } from '../../src/api/call-options.ts'
import { planMetrics } from '../../src/core/usage/metrics-plan.ts'
import { assertValid } from '../../src/model/errors.ts'
import { LIST_QUERY, type ListQuery } from '../../src/model/info.ts'
import { BASIN_NAME_BYTES_MIN_ON_POST } from '../../src/model/limits.ts'
import type { Metric, MetricsQuery } from '../../src/model/metrics.ts'
import { basinNameProblem, streamNameProblem } from '../../src/model/names.ts'
import { assertMembers, assertText, type Members } from '../../src/model/validation.ts'
import { metricsOf } from '../../src/wire/json-resources.ts'
import { listQueryParts, metricsQueryParts, queryText } from '../../src/wire/query.ts'
import { jsonCall } from './call.ts'
import type { Sender } from './sender.ts'

/**
 * Begins a call about the account, a basin or a stream. Returns its signal. Throws if its names or options
 * are invalid, and if the signal has aborted or the client closes.
 */
export function begin(
  { closing }: Pick<Sender, 'closing'>,
  options: CallOptions | undefined,
  names: readonly [] | readonly [basin: string] | readonly [basin: string, stream: string] = [],
  members?: Members,
): AbortSignal | undefined {
  for (const [i, name] of names.entries()) assertText(name, i === 0 ? 'basin' : 'stream')
  const signal = signalOf(options, members)
  signal?.throwIfAborted()
  closing.throwIfAborted()
  if (names.length === 2) assertValid(streamNameProblem(names[1]), 'stream')
  if (names.length > 0) assertValid(basinNameProblem(names[0]!), 'basin')
  return signal
}

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
  sender: Sender,
  names: readonly string[],
  query: MetricsQuery,
  options?: CallOptions,
): Promise<readonly Metric[]> {
  const signal = begin(sender, options)
  const level = (['account', 'basin', 'stream'] as const)[names.length]!
  // The clock of the server decides what is in the future.
  planMetrics(level, query, Number.POSITIVE_INFINITY)
  // The paths of the protocol have no place for names of basins that are shorter; those of headwater's own
  // do.
  const isShort = names[0] !== undefined && names[0].length < BASIN_NAME_BYTES_MIN_ON_POST
  const path = [isShort ? '/../metrics' : '/metrics', ...names.map(encodeURIComponent)].join('/')
  const call = jsonCall('GET', `${path}${queryText(metricsQueryParts(query))}`, { signal })
  return sender.json(call, metricsOf)
}
