import { describe, expect, it } from 'vitest'
import type { AppendOutcome } from '../linearizability/operations.ts'
import { type Batch, recordsOf, textOf } from './batch.ts'
import { checkLog, type Known, type LogRecord, type Observation } from './check-log.ts'

const START: Known = { tail: 0, trimPoint: 0 }

const logOf = (...batches: readonly Batch[]): LogRecord[] =>
  batches.flatMap(recordsOf).map((record, seqNum) => ({ seqNum, timestamp: 5, text: textOf(record) }))

const append = (batch: Batch, outcome: AppendOutcome, since = START): Observation => ({
  kind: 'append',
  since,
  batch,
  outcome,
})
const at = (start: number, end: number): AppendOutcome => ({ kind: 'appended', start, end, tail: end })
const tail = (tail: number, since = START): Observation => ({ kind: 'tail', since, tail })
const read = (from: number, records: readonly LogRecord[], since = START): Observation => ({
  kind: 'read',
  since,
  from,
  records,
})
const UNKNOWN: AppendOutcome = { kind: 'unknown' }
const NOT_MADE: AppendOutcome = { kind: 'not-made' }

const a: Batch = { bodies: ['a'] }
const fence: Batch = { bodies: ['b', 'c'], setFencingToken: 'me' }
const trim: Batch = { bodies: ['d'], trimTo: 2, fencingToken: 'me', matchSeqNum: 4 }
const LOG = logOf(a, fence, trim)
const APPENDS = [
  append(a, at(0, 1)),
  append(fence, UNKNOWN),
  append(trim, at(4, 6), { tail: 1, trimPoint: 0 }),
]

const plain: Batch = { bodies: ['x'] }
const fenced: Batch = { bodies: ['x'], fencingToken: 'other' }
const elsewhere: Batch = { bodies: ['x'], matchSeqNum: 3 }
const byToken = (fencingToken: string): AppendOutcome => ({ kind: 'refused', fencingToken })
const byNumber = (seqNum: number): AppendOutcome => ({ kind: 'refused', seqNum })

describe('what clients saw of a stream', () => {
  it.each<[string, Observation]>([
    ['a tail', tail(4)],
    ['the last tail', tail(6, { tail: 6, trimPoint: 2 })],
    ['a read before a trim', read(0, LOG)],
    ['a read after it', read(0, LOG.slice(2), { tail: 6, trimPoint: 2 })],
    ['a read from within', read(3, LOG.slice(3, 5), { tail: 6, trimPoint: 2 })],
    ['the refusal of a token', append(fenced, byToken(''))],
    ['the refusal of a later token', append(fenced, byToken('me'), { tail: 4, trimPoint: 0 })],
    ['the refusal of a number', append(elsewhere, byNumber(4))],
    ['an append without effect', append(elsewhere, NOT_MADE)],
    ['an append of unknown outcome', append(elsewhere, UNKNOWN)],
  ])('is consistent: %s', (_, observation) => {
    expect(checkLog(LOG, [...APPENDS, observation])).toEqual([])
  })

  it.each<[string, Observation, string]>([
    ['a lost append', append(plain, at(6, 7)), 'lost'],
    ['a tail that moves backwards', tail(1, { tail: 4, trimPoint: 0 }), 'a tail of 1 after 4'],
    ['a tail within a batch', tail(3), 'a tail of 3'],
    ['a read of nothing', read(0, []), 'a read from 0 that begins with undefined'],
    ['a read with a gap', read(0, [LOG[0]!, LOG[2]!]), 'other records'],
    ['a read of another record', read(0, [{ ...LOG[0]!, text: 'z' }]), 'other records'],
    ['a read of another time', read(0, [{ ...LOG[0]!, timestamp: 6 }]), 'other records'],
    ['a read of trimmed records', read(1, LOG.slice(1), { tail: 6, trimPoint: 2 }), 'after a trim to 2'],
    ['a read that omits a record', read(3, LOG.slice(4)), 'a read from 3 that begins with 4'],
    ['the refusal of the token', append({ ...fenced, fencingToken: 'me' }, byToken('me')), 'no reason'],
    ['the refusal by a former token', append(fenced, byToken(''), { tail: 4, trimPoint: 0 }), 'no reason'],
    ['the refusal of no token', append(plain, byToken('me')), 'no reason'],
    ['the refusal of the tail', append({ ...elsewhere, matchSeqNum: 4 }, byNumber(4)), 'no reason'],
    ['the refusal of no number', append(plain, byNumber(4)), 'no reason'],
    ['the refusal by a former tail', append(elsewhere, byNumber(1), { tail: 4, trimPoint: 0 }), 'no reason'],
  ])('is not: %s', (_, observation, finding) => {
    expect(checkLog(LOG, [...APPENDS, observation])).toEqual([expect.stringContaining(finding)])
  })

  it.each<[string, readonly LogRecord[], readonly Observation[], string]>([
    ['a gap', [LOG[0]!, { ...LOG[1]!, seqNum: 2 }], [APPENDS[0]!], 'record 2 is at position 1'],
    ['an earlier time', logOf(a, fence).map((one, i) => ({ ...one, timestamp: -i })), APPENDS, 'is lower'],
    ['a repetition', logOf(a, a), [APPENDS[0]!], 'records 0 and 1 are one: a'],
    ['a record of no append', LOG, APPENDS.slice(0, 2), 'no append begins at record 4'],
    ['a part of a batch', LOG.slice(0, 3), APPENDS.slice(0, 2), 'stored as [fence me,b]'],
    ['another order', logOf(fence, a), APPENDS.slice(0, 2), 'stored at 3, not as acknowledged'],
    ['a refused append', logOf(a), [append(a, byNumber(0))], 'stored without effect'],
    [
      'an append before its call',
      logOf(a),
      [append(a, at(0, 1), { tail: 1, trimPoint: 0 })],
      'before the tail',
    ],
    ['a wrong token', logOf(fenced), [append(fenced, at(0, 1))], 'stored while the fence was ""'],
    ['a wrong number', logOf(elsewhere), [append(elsewhere, at(0, 1))], 'not where it had to be'],
  ])('shows that the stored records have %s', (_, log, observations, finding) => {
    expect(checkLog(log, observations)).toContainEqual(expect.stringContaining(finding))
  })
})
