import fc from 'fast-check'
import { expect } from 'vitest'
import type { RequestExchange } from '../../../adapters/http/exchange.ts'
import { bearerToken, handlerSettings } from '../../../adapters/http/options.ts'
import { ApiRequest } from '../../../adapters/http/request.ts'
import { Router } from '../../../adapters/http/router.ts'
import { ROUTES } from '../../../adapters/http/routes.ts'
import { accessTokenIdProblem, accessTokenPrefixProblem } from '../../../src/model/access.ts'
import { utf8 } from '../../../src/model/bytes.ts'
import { INTEGER_MAX, LIST_LIMIT_MAX, SECONDS_MAX } from '../../../src/model/limits.ts'
import {
  ACCOUNT_METRIC_SETS,
  BASIN_METRIC_SETS,
  METRIC_INTERVALS,
  STREAM_METRIC_SETS,
} from '../../../src/model/metrics.ts'
import {
  basinNameProblem,
  basinPrefixProblem,
  streamNameProblem,
  streamPrefixProblem,
} from '../../../src/model/names.ts'
import { assertReadQuery, type ReadQuery } from '../../../src/model/read-query.ts'
import { millisecondsOf, type Time } from '../../../src/model/validation.ts'
import { HEADER_PREFIXES, usedHeaderPrefix } from '../../../src/wire/headers.ts'
import { mediaKind, mediaTypeEssence, readForm, requireJson } from '../../../src/wire/media-type.ts'
import {
  decodeListQuery,
  decodeMetricsQuery,
  decodeReadQuery,
  type PrefixRule,
} from '../../../src/wire/query.ts'
import { parseLastEventId, resumeQuery } from '../../../src/wire/sse.ts'
import { fuzzText } from './decoder.ts'
import { basinName, integer, optional, streamName, text } from './models.ts'
import { outcomeOf, type Rejects, withCode } from './outcomes.ts'

const ROUTER = new Router(ROUTES)
const SETTINGS = handlerSettings({ auth: 'none', basinDomains: ['localhost', 'streams.example.com'] })

/** Also the error of the platform for an invalid address. */
function invalidUrlOr(isRejection: Rejects): Rejects {
  return (error) =>
    isRejection(error) || (error instanceof TypeError && 'code' in error && error.code === 'ERR_INVALID_URL')
}

fuzzText('the path of a request', {
  models: fc.tuple(fc.constantFrom(...ROUTES.map(({ pattern }) => pattern)), basinName, streamName),
  encode: ([pattern, basin, stream]) =>
    pattern.replace('{basin}', basin).replace('{stream}', encodeURIComponent(stream)).replace('{id}', 'id'),
  decode(input) {
    const { pathname } = new URL(`http://localhost${input.startsWith('/') ? '' : '/'}${input}`)
    const match = ROUTER.match(pathname, '/mounted')
    if (match === undefined) return {}
    const request = new ApiRequest(exchangeTo('http://localhost/', ''), match, SETTINGS)
    const { basin, stream, id } = match.parameters
    return {
      pattern: match.pattern,
      basin: basin && request.basin,
      stream: stream && request.stream,
      id: id && request.tokenId,
    }
  },
  means: ([pattern, basin, stream]) => ({
    pattern,
    basin: pattern.includes('{basin}') ? basin : undefined,
    stream: pattern.includes('{stream}') ? stream : undefined,
    id: pattern.includes('{id}') ? 'id' : undefined,
  }),
  rejects: invalidUrlOr(withCode('bad_path')),
  verify({ basin, stream, id }) {
    if (basin !== undefined) expect(basinNameProblem(basin)).toBeUndefined()
    if (stream !== undefined) expect(streamNameProblem(stream)).toBeUndefined()
    if (id !== undefined) expect(accessTokenIdProblem(id)).toBeUndefined()
  },
  words: '/ // /v1 /streams /records /tail /mounted %2F %2e % %00 %ff ? # \\'.split(' '),
})

fuzzText('the basin of a request, in its host and a header', {
  models: fc.tuple(
    fc.constantFrom('H.localhost:8080\n', 'localhost\nH', 'H.streams.example.com\nH'),
    basinName,
  ),
  encode: ([address, basin]) => address.replaceAll('H', basin),
  decode(input) {
    const [host, ...header] = input.split('\n')
    const exchange = exchangeTo(`http://${host}/v1/streams`, header.join('\n'))
    return new ApiRequest(exchange, ROUTER.match('/v1/streams', '')!, SETTINGS).basin
  },
  means: ([, basin]) => basin,
  rejects: invalidUrlOr(withCode('bad_header')),
  verify: (basin) => expect(basinNameProblem(basin)).toBeUndefined(),
  words: ['.localhost', '.streams.example.com', '.', ':80', '@', '\n', 'A', '%41', '[::1]', 'xn--', '\u3002'],
  found: [['the message repeated a host that is no name', `${'00-q'.repeat(600)}.localhost\nmy-basin`]],
})

function exchangeTo(url: string, basin: string): RequestExchange {
  const header = (name: string) => (name === 'svc-basin' && basin !== '' ? basin : undefined)
  return { hostname: new URL(url).hostname, header } as RequestExchange
}

function search(parameters: Readonly<Record<string, unknown>>): string {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined)
  return `?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}`
}

const readQuery: fc.Arbitrary<ReadQuery> = fc
  .tuple(
    fc.constantFrom('seqNum', 'timestamp', 'tailOffset', 'none'),
    integer,
    fc.record({
      clamp: optional(fc.boolean()),
      count: optional(integer),
      bytes: optional(integer),
      until: optional(integer),
      waitMs: optional(fc.nat(SECONDS_MAX).map((seconds) => seconds * 1000)),
    }),
  )
  .map(([start, position, rest]) => (start === 'none' ? rest : { ...rest, [start]: position }))

function readSearch(query: ReadQuery): string {
  const encoded = (time: Time | undefined) => {
    const value = time && millisecondsOf(time)
    // The largest integer of the wire is decoded as 2^64.
    return value === 2 ** 64 ? '18446744073709551615' : value && BigInt(value)
  }
  return search({
    seq_num: query.seqNum,
    timestamp: query.timestamp && millisecondsOf(query.timestamp),
    tail_offset: encoded(query.tailOffset),
    clamp: query.clamp,
    count: encoded(query.count),
    bytes: encoded(query.bytes),
    until: encoded(query.until),
    wait: query.waitMs === undefined ? undefined : query.waitMs / 1000,
  })
}

/** A decoded query is valid, except that its end may precede its start. */
function checkReadQuery(query: ReadQuery): void {
  const outcome = outcomeOf(() => assertReadQuery(query))
  if ('error' in outcome) expect(String(outcome.error)).toMatch(/exceeds or equal to/)
}

fuzzText('the query of a read', {
  models: readQuery,
  encode: readSearch,
  decode: decodeReadQuery,
  means: (query) => query,
  rejects: withCode('bad_query', 'invalid'),
  verify(query) {
    expect(decodeReadQuery(readSearch(query)), 'the query, encoded again').toEqual(query)
    checkReadQuery(query)
    checkReadQuery(resumeQuery(query, { lastSeqNum: 7, count: 7, bytes: INTEGER_MAX }))
  },
  words: '&seq_num= &timestamp= &tail_offset= &clamp=true &count= &until= &wait= & = %30 +'.split(' '),
})

const LISTS: readonly [string, PrefixRule, fc.Arbitrary<string>][] = [
  ['basins', basinPrefixProblem, basinName],
  ['streams', streamPrefixProblem, streamName],
  ['access tokens', (prefix, role) => accessTokenPrefixProblem(prefix, role), basinName],
]

for (const [kind, prefixProblem, name] of LISTS) {
  fuzzText(`the query of a list of ${kind}`, {
    models: fc.record({
      prefix: optional(name),
      startAfter: optional(name),
      limit: fc.integer({ min: 1, max: LIST_LIMIT_MAX }),
    }),
    encode: ({ prefix, startAfter, limit }) => search({ prefix, start_after: startAfter, limit }),
    decode: (input) => decodeListQuery(input, prefixProblem),
    means: (query) => query,
    rejects: withCode('bad_query'),
    verify({ prefix, startAfter, limit }) {
      expect(limit).toSatisfy((count) => count >= 1 && count <= LIST_LIMIT_MAX)
      if (prefix !== undefined) expect(prefixProblem(prefix, 'prefix')).toBeUndefined()
      if (startAfter !== undefined) expect(prefixProblem(startAfter, 'start-after')).toBeUndefined()
    },
    words: '&prefix= &start_after= &limit= & %C3%A9 %ff %00 +'.split(' '),
  })
}

const NOW_SECONDS = 1_800_000_000
const seconds = fc.oneof(fc.nat(NOW_SECONDS), fc.constantFrom(0, NOW_SECONDS - 86_400, NOW_SECONDS))

fuzzText('the query of metrics', {
  models: fc.record({
    set: fc.constantFrom(...BASIN_METRIC_SETS),
    start: optional(seconds),
    end: optional(seconds),
    interval: optional(fc.constantFrom(...METRIC_INTERVALS)),
  }),
  encode: search,
  decode: (input) => decodeMetricsQuery(input, BASIN_METRIC_SETS),
  rejects: withCode('bad_query'),
  verify(query) {
    // Times are seconds on the wire.
    const encoded = (time: unknown) => (time === undefined ? undefined : Number(time) / 1000)
    const again = search({ ...query, start: encoded(query.start), end: encoded(query.end) })
    expect(decodeMetricsQuery(again, BASIN_METRIC_SETS), 'the query, encoded again').toEqual(query)
  },
  words: [
    ...'&set= &start= &end= &interval= storage minute day'.split(' '),
    ...ACCOUNT_METRIC_SETS,
    ...STREAM_METRIC_SETS,
  ],
})

fuzzText('the header last-event-id', {
  models: fc.record({ lastSeqNum: integer, count: integer, bytes: integer }),
  encode: ({ lastSeqNum, count, bytes }) => `${lastSeqNum},${count},${bytes}`,
  decode: parseLastEventId,
  means: (delivered) => delivered,
  rejects: withCode('bad_header', 'invalid'),
  verify(delivered) {
    expect(Object.values(delivered).every(Number.isSafeInteger)).toBe(true)
    assertReadQuery(resumeQuery({ count: 5, bytes: 5 }, delivered))
  },
  words: [',', ',,', '0', '-', ' ', '\n', '1,2,3'],
})

const TYPES = [
  ...['application/json', 'application/problem+json', 'application/protobuf', 'application/x-protobuf'],
  ...['text/event-stream', 'text/plain', 'svcs/proto', 's2s/proto', '*/*'],
]

fuzzText('media types', {
  models: fc.tuple(
    fc.constantFrom(...TYPES),
    fc.constantFrom('', '; charset=utf-8', ', text/plain', ';q=0', ' '),
  ),
  encode: (parts) => parts.join(''),
  decode(input) {
    const json = outcomeOf(() => requireJson(input))
    if ('error' in json && !withCode('bad_json')(json.error)) throw json.error
    return { essence: mediaTypeEssence(input), kind: mediaKind(input), form: readForm(input, input) }
  },
  means: ([type]) => ({ essence: type, kind: mediaKind(type), form: readForm(type, type) }),
  verify({ essence, kind }, input) {
    expect(essence === undefined).toBe(kind === undefined)
    if (essence === undefined) return
    expect(essence).toMatch(/^[^\s/]+\/[^\s/]+$/)
    expect(input.trimStart().toLowerCase().startsWith(essence), 'the header begins with the type').toBe(true)
    expect(mediaKind(essence), 'the kind without parameters').toBe(kind)
  },
  words: [...TYPES, ';', ',', '/', '+json', '\t', 'q=0'],
})

fuzzText('the token in the header authorization', {
  models: fc.stringMatching(/^[!-~]{1,60}$/),
  encode: (token) => `Bearer ${token}`,
  decode: (input) => bearerToken(exchangeWith(new Map([['authorization', input]]))),
  means: (token) => token,
  verify(token, input) {
    if (token === undefined) return
    expect(token).toMatch(/^[!-~]+$/)
    expect(input).toContain(token)
  },
  words: ['Bearer ', 'bearer', 'Basic ', ' ', '\t', 'Bearer Bearer '],
})

/** Header values by name. */
function headersOf(lines: string): Map<string, string> {
  return new Map(
    lines.split('\n').map((line) => {
      const [, name = '', value = ''] = /^([^:]*): ?(.*)$/s.exec(line) ?? []
      return [name.toLowerCase(), value]
    }),
  )
}

function exchangeWith(values: ReadonlyMap<string, string>): RequestExchange {
  return { header: (name: string) => values.get(name) } as RequestExchange
}

fuzzText('headers with the prefix of a vendor', {
  models: fc.tuple(fc.constantFrom(...HEADER_PREFIXES), text),
  // Bytes beyond ASCII as `Headers` returns them, one character each.
  encode: ([prefix, value]) => `${prefix}-basin: ${Buffer.from(utf8(value)).toString('latin1')}`,
  decode(input) {
    const exchange = exchangeWith(headersOf(input))
    const request = new ApiRequest(exchange, { pattern: '', target: undefined, parameters: {} }, SETTINGS)
    const basin = request.vendorHeader('basin')
    return { basin, prefix: request.headerPrefix, used: usedHeaderPrefix(exchange) }
  },
  means: ([prefix, basin]) => ({ basin, prefix, used: prefix }),
  rejects: withCode('bad_header'),
  verify({ prefix, used }) {
    expect(HEADER_PREFIXES).toContain(prefix)
    expect(used ?? prefix).toBe(prefix)
  },
  words: [
    ...['\nsvc-basin: ', '\ns2-basin: ', '\ns2-format: ', '\ncontent-type: s2s/proto'],
    ...['\xc3\xa9', '\xed\xa0', '\n'],
  ],
})
