import fc from 'fast-check'
import { planMetrics } from '../../../../src/core/usage/metrics-plan.ts'
import { accessTokenPrefixProblem } from '../../../../src/model/access.ts'
import { basinPrefixProblem, streamPrefixProblem } from '../../../../src/model/control-names.ts'
import { HeadwaterError } from '../../../../src/model/errors.ts'
import { INTEGER_MAX, LIST_LIMIT_MAX, WAIT_SECONDS_MAX } from '../../../../src/model/limits.ts'
import {
  ACCOUNT_METRIC_SETS,
  BASIN_METRIC_SETS,
  METRIC_INTERVALS,
  type MetricsQuery,
  STREAM_METRIC_SETS,
} from '../../../../src/model/metrics.ts'
import { assertReadQuery, type ReadQuery } from '../../../../src/model/read-query.ts'
import { millisecondsOf, type Time } from '../../../../src/model/validation.ts'
import {
  decodeListQuery,
  decodeMetricsQuery,
  decodeReadQuery,
  type PrefixRule,
} from '../../../../src/wire/query.ts'
import { resumeQuery } from '../../../../src/wire/sse.ts'
import { equal, ok } from '../harness/assertions.ts'
import { headwaterError } from '../harness/refusals.ts'
import { type AnyTarget, target } from '../harness/target.ts'
import { basinName, integer, streamName } from '../models.ts'

function search(parameters: Readonly<Record<string, unknown>>): string {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined)
  return `?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}`
}

const optional = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: undefined })

const readQuery: fc.Arbitrary<ReadQuery> = fc
  .tuple(
    fc.constantFrom('seqNum', 'timestamp', 'tailOffset', 'none'),
    integer,
    fc.record({
      clamp: optional(fc.boolean()),
      count: optional(integer),
      bytes: optional(integer),
      until: optional(integer),
      waitMs: optional(fc.nat(WAIT_SECONDS_MAX).map((seconds) => seconds * 1000)),
    }),
  )
  .map(([start, position, rest]) => (start === 'none' ? rest : { ...rest, [start]: position }))

function readSearch(query: ReadQuery): string {
  const written = (time: Time | undefined) => {
    const value = time && millisecondsOf(time)
    // The largest integer of the wire is read as 2^64.
    return value === 2 ** 64 ? '18446744073709551615' : value && BigInt(value)
  }
  return search({
    seq_num: query.seqNum,
    timestamp: query.timestamp && millisecondsOf(query.timestamp),
    tail_offset: written(query.tailOffset),
    clamp: query.clamp,
    count: written(query.count),
    bytes: written(query.bytes),
    until: written(query.until),
    wait: query.waitMs === undefined ? undefined : query.waitMs / 1000,
  })
}

export const readQueries = target({
  name: 'read-query',
  models: readQuery,
  encode: readSearch,
  decode: (input: string) => decodeReadQuery(input),
  means: (query) => query,
  refuses: headwaterError('bad_query', 'invalid'),
  verify(query) {
    equal(decodeReadQuery(readSearch(query)), query, 'the query, written and read again')
    checkMeaning(query)
    checkMeaning(resumeQuery(query, { lastSeqNum: 7, count: 7, bytes: INTEGER_MAX }))
  },
  words: [
    '&seq_num=',
    '&timestamp=',
    '&tail_offset=',
    '&clamp=true',
    '&count=',
    '&until=',
    '&wait=',
    '&',
    '=',
    '%30',
    '+',
  ],
  share: 30,
})

/** A decoded value is a valid query, except that its end may precede its start. */
function checkMeaning(query: ReadQuery): void {
  try {
    assertReadQuery(query)
  } catch (error) {
    if (!HeadwaterError.is(error) || !/exceeds or equal to/.test(error.message)) throw error
  }
}

function listQuery(kind: string, prefixProblem: PrefixRule, name: fc.Arbitrary<string>): AnyTarget {
  return target({
    name: `list-query-${kind}`,
    models: fc.record({
      prefix: optional(name),
      startAfter: optional(name),
      limit: fc.integer({ min: 1, max: LIST_LIMIT_MAX }),
    }),
    encode: ({ prefix, startAfter, limit }) => search({ prefix, start_after: startAfter, limit }),
    decode: (input: string) => decodeListQuery(input, prefixProblem),
    means: (query) => query,
    refuses: headwaterError('bad_query'),
    verify({ prefix, startAfter, limit }) {
      ok(limit! >= 1 && limit! <= LIST_LIMIT_MAX, `a limit of ${limit}`)
      ok(prefix === undefined || prefixProblem(prefix, 'prefix') === undefined, 'a prefix that is none')
      const isPosition = startAfter === undefined || prefixProblem(startAfter, 'start-after') === undefined
      ok(isPosition, 'a position that is none')
    },
    words: ['&prefix=', '&start_after=', '&limit=', '&', '%C3%A9', '%ff', '%00', '+'],
  })
}

export const listQueries = [
  listQuery('basins', basinPrefixProblem, basinName),
  listQuery('streams', streamPrefixProblem, streamName),
  listQuery('tokens', (text, role) => accessTokenPrefixProblem(text, role), basinName),
]

const NOW_SECONDS = 1_800_000_000
const time = fc.oneof(fc.nat(NOW_SECONDS), fc.constantFrom(0, NOW_SECONDS - 86_400, NOW_SECONDS))

export const metricsQueries = target({
  name: 'metrics-query',
  models: fc.record({
    set: fc.constantFrom(...BASIN_METRIC_SETS),
    start: optional(time),
    end: optional(time),
    interval: optional(fc.constantFrom(...METRIC_INTERVALS)),
  }),
  encode: search,
  decode: (input: string) => {
    const query = decodeMetricsQuery(input, BASIN_METRIC_SETS)
    return { query, plan: planOf(query) }
  },
  refuses: headwaterError('bad_query'),
  verify({ query, plan }) {
    // Times are seconds on the wire.
    const seconds = (time: unknown) => (time === undefined ? undefined : Number(time) / 1000)
    const written = search({ ...query, start: seconds(query.start), end: seconds(query.end) })
    equal(decodeMetricsQuery(written, BASIN_METRIC_SETS), query, 'the query, written and read again')
    if (plan === undefined) return
    ok(plan.from < plan.to && (plan.to - plan.from) % plan.seconds === 0, 'a plan of no whole intervals')
    ok((plan.to - plan.from) / plan.seconds <= 31 * 24 * 60, 'a plan of very many intervals')
  },
  words: [
    '&set=',
    '&start=',
    '&end=',
    '&interval=',
    ...ACCOUNT_METRIC_SETS,
    ...STREAM_METRIC_SETS,
    'storage',
    'minute',
    'day',
  ],
})

/** Undefined for a query that the engine rejects. */
function planOf(query: MetricsQuery) {
  try {
    return planMetrics('basin', query, NOW_SECONDS)
  } catch (error) {
    if (!HeadwaterError.is(error) || error.code !== 'invalid') throw error
    return undefined
  }
}
