import { describe, expect, it } from 'vitest'
import {
  afterLocating,
  type EmptyReads,
  planRead,
  type ReadKind,
  type ReadPlan,
  type ReadPolicy,
} from '../../src/core/read-plan.ts'
import type { Trim } from '../../src/core/retention.ts'
import { MIB } from '../../src/model/limits.ts'
import type { ReadQuery } from '../../src/model/read-query.ts'

interface StoredStream {
  readonly tail: { readonly seqNum: number; readonly timestamp: number }
  readonly trimPoint: number
  readonly trims: readonly Trim[]
  /** The records that are visible to a new read. */
  readonly records: readonly { readonly seqNum: number; readonly timestamp: number }[]
}

/** Ten records, their timestamps 100, 100, 120, 120, ... 180, 180. */
const WRITTEN = Array.from({ length: 10 }, (_, seqNum) => ({ seqNum, timestamp: 100 + 20 * (seqNum >> 1) }))
const TAIL = { seqNum: 10, timestamp: 180 }
const STREAMS = {
  empty: { tail: { seqNum: 0, timestamp: 0 }, trimPoint: 0, trims: [], records: [] },
  records: { tail: TAIL, trimPoint: 0, trims: [], records: WRITTEN },
  trimmed: { tail: TAIL, trimPoint: 5, trims: [], records: WRITTEN.slice(5) },
  'all trimmed': { tail: TAIL, trimPoint: 10, trims: [], records: [] },
  'all expired': { tail: TAIL, trimPoint: 0, trims: [], records: [] },
  'last expired': { tail: TAIL, trimPoint: 0, trims: [], records: WRITTEN.slice(0, 4) },
  'timestamps 0': {
    tail: { seqNum: 1, timestamp: 0 },
    trimPoint: 0,
    trims: [],
    records: [{ seqNum: 0, timestamp: 0 }],
  },
} satisfies Record<string, StoredStream>

type Outcome = 'read' | 416 | 'empty'

/** The outcome of a read after the storage returned its first record. */
function outcomeOf(
  query: ReadQuery,
  kind: ReadKind,
  stream: StoredStream,
  allowsEmpty: EmptyReads = false,
): Outcome {
  const outcome = planRead(query, kind, stream, { allowsEmpty }, 0)
  if (outcome.kind !== 'read') return outcome.kind === 'empty' ? 'empty' : 416
  const { start, floor } = outcome.plan
  const hasRecord = stream.records.some(
    ({ seqNum, timestamp }) =>
      seqNum >= floor && ('seqNum' in start ? seqNum >= start.seqNum : timestamp >= start.timestamp),
  )
  const located = afterLocating(outcome.plan, hasRecord, { allowsEmpty })
  return located === 'unsatisfiable' ? 416 : located
}

function planOf(
  query: ReadQuery,
  kind: ReadKind,
  stream: StoredStream = STREAMS.records,
  policy: ReadPolicy = {},
  graceStart = 0,
): ReadPlan {
  const outcome = planRead(query, kind, stream, policy, graceStart)
  if (outcome.kind !== 'read') throw new Error(`not a read: ${outcome.kind}`)
  return outcome.plan
}

/**
 * The columns of the table: effective `wait` 0 (unary, and sessions with bounds), more than 0, and none at
 * all.
 */
const COLUMNS: readonly (readonly [string, ReadKind, ReadQuery])[] = [
  ['unary', 'unary', {}],
  ['unary with wait 0', 'unary', { waitMs: 0 }],
  ['bounded session', 'session', { count: 5 }],
  ['unary with wait', 'unary', { waitMs: 1000 }],
  ['bounded session with wait', 'session', { count: 5, waitMs: 1000 }],
  ['session', 'session', {}],
  ['session with wait', 'session', { waitMs: 1000 }],
  ['session with wait 0', 'session', { waitMs: 0 }],
]

describe('a read from a start without records', () => {
  const yes = 'read'
  type Row = [keyof typeof STREAMS, ReadQuery, ...Outcome[]]
  const rows: Row[] = [
    // stream, start; without wait: unary, wait 0, bounded; with wait: unary, bounded; session: for ever,
    // wait, wait 0
    ['records', { seqNum: 0 }, yes, yes, yes, yes, yes, yes, yes, yes],
    ['records', { seqNum: 9 }, yes, yes, yes, yes, yes, yes, yes, yes],
    ['records', { seqNum: 10 }, 416, 416, 416, yes, yes, yes, yes, 416],
    ['records', { seqNum: 11 }, 416, 416, 416, 416, 416, 416, 416, 416],
    ['records', { seqNum: 11, clamp: false }, 416, 416, 416, 416, 416, 416, 416, 416],
    ['records', { seqNum: 11, clamp: true }, 416, 416, 416, yes, yes, yes, yes, 416],
    ['records', {}, 416, 416, 416, yes, yes, yes, yes, 416],
    ['records', { tailOffset: 0 }, 416, 416, 416, yes, yes, yes, yes, 416],
    ['records', { tailOffset: 1 }, yes, yes, yes, yes, yes, yes, yes, yes],
    ['records', { tailOffset: 99 }, yes, yes, yes, yes, yes, yes, yes, yes],
    ['records', { timestamp: 0 }, yes, yes, yes, yes, yes, yes, yes, yes],
    ['records', { timestamp: 180 }, yes, yes, yes, yes, yes, yes, yes, yes],
    ['records', { timestamp: 181 }, 416, 416, 416, 416, 416, 416, 416, 416],
    ['records', { timestamp: 181, clamp: true }, 416, 416, 416, yes, yes, yes, yes, 416],
    ['empty', {}, 416, 416, 416, yes, yes, yes, yes, 416],
    ['empty', { seqNum: 0 }, 416, 416, 416, yes, yes, yes, yes, 416],
    ['empty', { seqNum: 1 }, 416, 416, 416, 416, 416, 416, 416, 416],
    ['empty', { seqNum: 1, clamp: true }, 416, 416, 416, yes, yes, yes, yes, 416],
    ['empty', { tailOffset: 5 }, 416, 416, 416, yes, yes, yes, yes, 416],
    ['empty', { timestamp: 0 }, 416, 416, 416, yes, yes, yes, yes, 416],
    ['empty', { timestamp: 1 }, 416, 416, 416, 416, 416, 416, 416, 416],
    ['empty', { timestamp: 1, clamp: true }, 416, 416, 416, yes, yes, yes, yes, 416],
    ['trimmed', { seqNum: 0 }, yes, yes, yes, yes, yes, yes, yes, yes],
    ['trimmed', { timestamp: 0 }, yes, yes, yes, yes, yes, yes, yes, yes],
    ['all trimmed', { seqNum: 0 }, 416, 416, 416, yes, yes, yes, yes, 416],
    ['all trimmed', { seqNum: 9 }, 416, 416, 416, yes, yes, yes, yes, 416],
    ['all trimmed', { seqNum: 11 }, 416, 416, 416, 416, 416, 416, 416, 416],
    ['all trimmed', { tailOffset: 3 }, 416, 416, 416, yes, yes, yes, yes, 416],
    ['all trimmed', { timestamp: 180 }, 416, 416, 416, yes, yes, yes, yes, 416],
    ['all expired', { seqNum: 0 }, 416, 416, 416, yes, yes, yes, yes, 416],
    ['all expired', { timestamp: 0 }, 416, 416, 416, yes, yes, yes, yes, 416],
    ['last expired', { seqNum: 4 }, 416, 416, 416, yes, yes, yes, yes, 416],
    ['timestamps 0', { timestamp: 0 }, yes, yes, yes, yes, yes, yes, yes, yes],
    ['timestamps 0', { timestamp: 1 }, 416, 416, 416, 416, 416, 416, 416, 416],
  ]
  it.each(rows)('%s, %j', (stream, start, ...expected) => {
    const outcomes = COLUMNS.map(([, kind, query]) =>
      outcomeOf({ ...query, ...start }, kind, STREAMS[stream]),
    )
    expect(outcomes).toEqual(expected)
  })
})

describe('every combination of start and stream', () => {
  const kinds = ['unary', 'session'] as const
  const bounds: ReadQuery[] = [{}, { count: 0 }, { count: 5 }, { bytes: 0 }, { bytes: 500 }, { until: 9999 }]
  const waits = [undefined, 0, 0.001, 30_000, Number.POSITIVE_INFINITY]
  const starts: ReadQuery[] = [
    {},
    ...[0, 1, 4, 5, 9, 10, 11, Number.MAX_SAFE_INTEGER].map((seqNum) => ({ seqNum })),
    ...[0, 1, 5, 10, 11, 2 ** 60].map((tailOffset) => ({ tailOffset })),
    ...[0, 1, 100, 130, 180, 181, 5000].map((timestamp) => ({ timestamp })),
  ]

  /** The rule of docs/protocol.md "Start of a read", record by record. */
  function rule(query: ReadQuery, kind: ReadKind, stream: StoredStream, allowsEmpty: EmptyReads): Outcome {
    const { tail, records } = stream
    const isBounded = [query.count, query.bytes, query.until].some((bound) => bound !== undefined)
    const wait = query.waitMs ?? (kind === 'session' && !isBounded ? Number.POSITIVE_INFINITY : 0)
    const seqNum =
      query.timestamp === undefined ? (query.seqNum ?? tail.seqNum - (query.tailOffset ?? 0)) : undefined
    const isBeyond = seqNum === undefined ? Number(query.timestamp) > tail.timestamp : seqNum > tail.seqNum
    const isLocal = allowsEmpty === 'always'
    if (isBeyond && !query.clamp && !(isLocal && seqNum === undefined)) return 416
    if (wait > 0) return 'read'
    const startsAtTail = isBeyond || tail.seqNum === 0 || seqNum === tail.seqNum
    if (isLocal && startsAtTail) return 'empty'
    if (startsAtTail) return allowsEmpty && kind === 'session' && !isBounded ? 'empty' : 416
    const isAvailable = records.some((record) =>
      seqNum === undefined ? record.timestamp >= Number(query.timestamp) : record.seqNum >= seqNum,
    )
    if (isAvailable) return 'read'
    return allowsEmpty ? 'empty' : 416
  }

  it.each(Object.entries(STREAMS))('of a read with the stream: %s', (_, stream) => {
    const wrong: object[] = []
    for (const kind of kinds)
      for (const bound of bounds)
        for (const waitMs of waits)
          for (const start of starts)
            for (const clamp of [undefined, false, true])
              for (const allowsEmpty of [false, 'session', 'always'] as const) {
                const query = { ...bound, ...start, waitMs, clamp }
                const expected = rule(query, kind, stream, allowsEmpty)
                const outcome = outcomeOf(query, kind, stream, allowsEmpty)
                if (outcome !== expected) wrong.push({ kind, query, allowsEmpty, expected, outcome })
              }
    expect(wrong).toEqual([])
  })
})

describe('the start of a read', () => {
  it.each<[ReadQuery, ReadPlan['start']]>([
    [{}, { seqNum: 10 }],
    [{ seqNum: 0 }, { seqNum: 0 }],
    [{ seqNum: 10 }, { seqNum: 10 }],
    [{ tailOffset: 0 }, { seqNum: 10 }],
    [{ tailOffset: 3 }, { seqNum: 7 }],
    [{ tailOffset: 10 }, { seqNum: 0 }],
    [{ tailOffset: 11 }, { seqNum: 0 }],
    [{ tailOffset: Number.POSITIVE_INFINITY }, { seqNum: 0 }],
    [{ timestamp: 0 }, { timestamp: 0 }],
    [{ timestamp: 180 }, { timestamp: 180 }],
    // Clamping moves only a start beyond the tail.
    [{ seqNum: 11, clamp: true }, { seqNum: 10 }],
    [{ timestamp: 181, clamp: true }, { seqNum: 10 }],
    [{ seqNum: 3, clamp: true }, { seqNum: 3 }],
    [{ timestamp: 180, clamp: true }, { timestamp: 180 }],
  ])('%j', (query, start) => {
    expect(planOf({ ...query, waitMs: 1000 }, 'session').start).toEqual(start)
  })

  it('excludes records trimmed before it was opened', () => {
    expect(planOf({ seqNum: 0 }, 'unary', STREAMS.trimmed).floor).toBe(5)
    expect(planOf({ seqNum: 0 }, 'unary', STREAMS.records).floor).toBe(0)
  })

  const TRIMS = [
    { point: 2, at: 1_000 },
    { point: 5, at: 2_000 },
    { point: 10, at: 3_000 },
  ]
  it.each([
    [999, 0],
    [1_000, 2],
    [2_500, 5],
    [3_000, 10],
  ])(
    'with `includesTrimmed` and a grace period from %i on is at the trim point of then',
    (graceStart, floor) => {
      const stream = { ...STREAMS.records, trimPoint: 10, trims: TRIMS }
      const query = { seqNum: 0 }
      expect(planOf(query, 'unary', stream, { includesTrimmed: true }, graceStart).floor).toBe(floor)
      expect(planOf(query, 'unary', stream, {}, graceStart).floor).toBe(10)
    },
  )
})

describe('the wait of a read', () => {
  const ALL = Number.POSITIVE_INFINITY
  it.each<[ReadKind, ReadQuery, number, boolean]>([
    ['unary', {}, 0, false],
    ['unary', { waitMs: 0 }, 0, false],
    ['unary', { waitMs: 60_000 }, 60_000, false],
    ['unary', { waitMs: 61_000 }, 60_000, false],
    ['unary', { waitMs: 2000 ** 32 - 1 }, 60_000, false],
    ['session', {}, ALL, false],
    ['session', { waitMs: 0 }, 0, true],
    ['session', { waitMs: 61_000 }, 61_000, false],
    ['session', { waitMs: 4_294_967_295_000 }, 4_294_967_295_000, false],
    ['session', { count: 0 }, 0, false],
    ['session', { bytes: 0 }, 0, false],
    ['session', { until: 0 }, 0, false],
    ['session', { count: 5, waitMs: 0 }, 0, false],
    ['session', { count: 5, waitMs: 1500 }, 1500, false],
  ])('%s, %j: %d ms, chases the tail: %s', (kind, query, waitMs, chasesTail) => {
    expect(planOf({ seqNum: 0, ...query }, kind)).toMatchObject({ waitMs, chasesTail })
  })
})

describe('the bounds of a read', () => {
  it('are those of the query or its kind', () => {
    const query = { seqNum: 0, count: 2000, bytes: 2 * MIB, until: 500 }
    expect(planOf(query, 'unary').limits).toEqual({ count: 1000, bytes: MIB, until: 500 })
    expect(planOf(query, 'session').limits).toEqual({ count: 2000, bytes: 2 * MIB, until: 500 })
  })

  it('of 0 neither cause nor prevent a 416', () => {
    expect(outcomeOf({ seqNum: 0, count: 0 }, 'unary', STREAMS.records)).toBe('read')
    expect(outcomeOf({ seqNum: 10, count: 0 }, 'unary', STREAMS.records)).toBe(416)
    expect(outcomeOf({ seqNum: 10, bytes: 0, waitMs: 1000 }, 'session', STREAMS.records)).toBe('read')
  })
})
