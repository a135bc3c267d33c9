import { describe, expect, it } from 'vitest'
import { basinPrefixProblem, streamPrefixProblem } from '../../src/model/names.ts'
import {
  decodeListQuery,
  decodeMetricsQuery,
  decodeReadQuery,
  QueryParameters,
  queryText,
  readQueryParts,
} from '../../src/wire/query.ts'
import { rejection } from '../model/rejection.ts'
import { outcomeOf } from './outcome.ts'

const MAX = Number.MAX_SAFE_INTEGER

describe('a read query', () => {
  it.each([
    ['', {}],
    ['?', {}],
    ['seq_num=0', { seqNum: 0 }],
    ['?seq_num=7', { seqNum: 7 }],
    ['seq_num=9007199254740991', { seqNum: MAX }],
    ['seq_num=007', { seqNum: 7 }],
    [`seq_num=${'0'.repeat(100)}7`, { seqNum: 7 }],
    ['timestamp=5&until=5', { timestamp: 5, until: 5 }],
    ['tail_offset=3', { tailOffset: 3 }],
    ['clamp=true', { clamp: true }],
    ['clamp=false', { clamp: false }],
    ['count=0&bytes=0&until=0&wait=0', { count: 0, bytes: 0, until: 0, waitMs: 0 }],
    ['wait=4294967295', { waitMs: 4_294_967_295_000 }],
    ['count=%31%30', { count: 10 }],
    ['%63ount=1', { count: 1 }],
    ['what=1&what=2&seq_num=1', { seqNum: 1 }],
    ['Seq_Num=1', {}],
    ['=1&&a', {}],
    ['what=%ff%zz', {}],
  ])('%j', (search, query) => {
    expect(decodeReadQuery(search)).toEqual(query)
  })

  const NUMBERS = ['seq_num', 'timestamp', 'tail_offset', 'count', 'bytes', 'until', 'wait']
  it.each(NUMBERS)('accepts only plain unsigned decimals for %s', (name) => {
    const wrong = ['', '-1', '%2B1', '+1', '1+', '1.0', '1e3', '0x1', '1_0', 'x', 'NaN', '%D9%A1', '%ff']
    for (const text of [...wrong, '18446744073709551616', '9'.repeat(21), '9'.repeat(1_000_000)]) {
      expect(`${text} ${outcomeOf(() => decodeReadQuery(`${name}=${text}`))}`).toBe(`${text} 400 bad_query`)
    }
    expect(outcomeOf(() => decodeReadQuery(name))).toBe('400 bad_query')
    expect(rejection(() => decodeReadQuery(`${name}=x`))).toMatchObject({ field: name })
  })

  it.each([...NUMBERS, 'clamp'])('rejects %s if it is repeated', (name) => {
    const value = name === 'clamp' ? 'true' : '1'
    expect(outcomeOf(() => decodeReadQuery(`${name}=${value}&x=1&${name}=${value}`))).toBe('400 bad_query')
  })

  it.each(['', '1', '0', 'True', 'TRUE', 'yes', 'true+', 'null'])('rejects clamp=%s', (text) => {
    expect(outcomeOf(() => decodeReadQuery(`clamp=${text}`))).toBe('400 bad_query')
  })

  it('rejects a wait beyond 32 bits', () => {
    expect(outcomeOf(() => decodeReadQuery('wait=4294967296'))).toBe('400 bad_query')
  })

  it.each([
    ['tail_offset', 'tailOffset'],
    ['count', 'count'],
    ['bytes', 'bytes'],
    ['until', 'until'],
  ])('interprets a large %s as everything', (name, member) => {
    expect(decodeReadQuery(`${name}=9007199254740991`)).toMatchObject({ [member]: MAX })
    for (const text of ['9007199254740992', '18446744073709551615']) {
      expect(decodeReadQuery(`${name}=${text}`)).toMatchObject({ [member]: Number(text) })
    }
  })

  it.each(['seq_num', 'timestamp'])('rejects %s beyond 2^53 - 1 and names the limit', (name) => {
    for (const text of ['9007199254740992', '9007199254740993', '18446744073709551615']) {
      expect(outcomeOf(() => decodeReadQuery(`${name}=${text}`))).toBe('422 invalid')
      expect(rejection(() => decodeReadQuery(`${name}=${text}`))).toMatchObject({
        field: name,
        message: `\`${name}\` must be an integer from 0 to 9007199254740991`,
      })
    }
  })

  it.each([
    'seq_num=0&timestamp=0',
    'seq_num=0&tail_offset=0',
    'timestamp=0&tail_offset=0',
    'seq_num=1&timestamp=1&tail_offset=1',
  ])('rejects more than one start: %s', (search) => {
    expect(outcomeOf(() => decodeReadQuery(search))).toBe('422 invalid')
    expect(rejection(() => decodeReadQuery(search))?.message).toBe(
      'only one of seq_num, timestamp, or tail_offset can be provided',
    )
  })

  it.each(['seq_num=0&timestamp=0&wait=x', 'seq_num=9007199254740992&clamp='])(
    'reports malformed parameters before invalid values: %s',
    (search) => {
      expect(outcomeOf(() => decodeReadQuery(search))).toBe('400 bad_query')
    },
  )
})

describe('a list query', () => {
  const streams = (search: string) => decodeListQuery(search, streamPrefixProblem)
  const basins = (search: string) => decodeListQuery(search, basinPrefixProblem)

  it.each([
    ['', { limit: 1000 }],
    ['limit=0', { limit: 1000 }],
    ['limit=1', { limit: 1 }],
    ['limit=1000', { limit: 1000 }],
    ['limit=1001', { limit: 1000 }],
    ['limit=18446744073709551615', { limit: 1000 }],
    ['prefix=&start_after=', { prefix: '', startAfter: '', limit: 1000 }],
    ['prefix=a-&start_after=0', { prefix: 'a-', startAfter: '0', limit: 1000 }],
    ['prefix=b&start_after=a', { prefix: 'b', startAfter: 'a', limit: 1000 }],
    ['what=1&what=2', { limit: 1000 }],
  ])('%j', (search, query) => {
    expect(streams(search)).toEqual(query)
    expect(basins(search)).toEqual(query)
  })

  it.each([
    ['prefix=a%2Fb+c%20d', 'a/b c d'],
    ['prefix=%C3%A9', 'é'],
    ['prefix=A', 'A'],
    ['prefix=%EF%BB%BFa', '\ufeffa'],
    ['prefix=a%3D1=2', 'a=1=2'],
    // Form decoding replaces ill-formed UTF-8 and leaves an invalid escape unchanged.
    ['prefix=%ff', '\ufffd'],
    ['prefix=%zz', '%zz'],
  ])('decodes the form of %j', (search, prefix) => {
    expect(streams(search).prefix).toBe(prefix)
  })

  it.each([
    'limit=',
    'limit=-1',
    'limit=x',
    'limit=18446744073709551616',
    'limit=1&limit=1',
    'prefix=a&prefix=a',
  ])('is rejected with %s', (search) => {
    expect(outcomeOf(() => streams(search))).toBe('400 bad_query')
  })

  it.each([
    ['prefix=A', 'basin prefix must begin with a lowercase letter or number'],
    ['prefix=-a', 'basin prefix must begin with a lowercase letter or number'],
    ['prefix=a_', 'basin prefix must comprise lowercase letters, numbers, and hyphens'],
    [`start_after=${'a'.repeat(49)}`, 'basin start-after must not exceed 48 bytes in length'],
    ['start_after=a.b', 'basin start-after must comprise lowercase letters, numbers, and hyphens'],
  ])('of basins is rejected with %s', (search, message) => {
    expect(outcomeOf(() => basins(search))).toBe('400 bad_query')
    expect(rejection(() => basins(search))?.message).toBe(message)
  })

  it.each(['prefix', 'start_after'])('of streams accepts 512 bytes of %s and no more', (name) => {
    expect(outcomeOf(() => streams(`${name}=${'s'.repeat(512)}`))).toBe('accepted')
    expect(outcomeOf(() => streams(`${name}=${'s'.repeat(513)}`))).toBe('400 bad_query')
    expect(outcomeOf(() => streams(`${name}=${'%C3%A9'.repeat(256)}s`))).toBe('400 bad_query')
  })
})

describe('QueryParameters', () => {
  it('limits integers to the given bound', () => {
    expect(new QueryParameters('start=4294967295').integer('start', 4_294_967_295)).toBe(4_294_967_295)
    const integer = () => new QueryParameters('start=4294967296').integer('start', 4_294_967_295)
    expect(rejection(integer)?.message).toBe('parameter `start` must be an integer from 0 to 4294967295')
  })

  it('distinguishes absent from empty', () => {
    expect(new QueryParameters('set=').text('set')).toBe('')
    expect(new QueryParameters('').text('set')).toBeUndefined()
  })
})

describe('a metrics query', () => {
  it('is converted from seconds to milliseconds', () => {
    expect(decodeMetricsQuery('set=storage&start=60&end=120', ['storage'])).toEqual({
      set: 'storage',
      start: 60_000,
      end: 120_000,
      interval: undefined,
    })
    expect(decodeMetricsQuery('set=storage', ['storage'])).toMatchObject({ start: undefined, end: undefined })
  })

  it.each([
    '',
    'set=other',
    'set=storage&start=4294967296',
    'set=storage&start=1.5',
    'set=storage&interval=week',
  ])('is rejected with %j', (search) => {
    expect(outcomeOf(() => decodeMetricsQuery(search, ['storage']))).toBe('400 bad_query')
  })
})

describe('the query of a read', () => {
  it.each([
    [{ seqNum: 0, waitMs: 0 }, 'session', '?seq_num=0&count=18446744073709551615&wait=0'],
    [{ waitMs: Number.POSITIVE_INFINITY }, 'session', ''],
    [{ count: 5, waitMs: Number.POSITIVE_INFINITY }, 'session', '?count=5&wait=4294967295'],
    [{ timestamp: new Date(5), waitMs: 1_001 }, 'session', '?timestamp=5&clamp=true&wait=2'],
    [
      { tailOffset: 3, until: 2 ** 60, waitMs: 90_000 },
      'unary',
      '?tail_offset=3&until=18446744073709551615&wait=60',
    ],
  ] as const)('%j of a %s is %s', (query, kind, expected) => {
    expect(queryText(readQueryParts(query, kind))).toBe(expected)
  })
})
